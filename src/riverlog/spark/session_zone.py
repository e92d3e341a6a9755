"""The time zone of the session that a task works for, where the program has set one.

Spark hands settings on to tasks, but not what it takes where one is not set: here, the zone of the driver's machine.
"""

from datetime import tzinfo
from typing import Final

from pyspark import TaskContext

from riverlog.arrow.json_times import zone_of

SETTING: Final = "spark.sql.session.timeZone"


def session_zone() -> tzinfo | None:
    """Find the zone of times that name none; ValueError for one that is not known here."""
    context = TaskContext.get()
    name = None if context is None else context.getLocalProperty(SETTING)
    return None if name is None else zone_of(name)
