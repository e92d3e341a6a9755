"""The time zone of the session that a task works for, also where the program has set none.

Spark tells each worker of Python the zone of the session, which is that of the driver's Java where nobody has set one.
But it passes that to the worker's own code, and on to readers only what was set. So the zone is looked for where the
worker keeps it, in the frames that have called; and where a worker keeps it elsewhere, among what was set.
"""

import sys
from datetime import tzinfo
from typing import Final

from pyspark import TaskContext

from riverlog.arrow.json.times import zone_of

SETTING: Final = "spark.sql.session.timeZone"
KEPT_AS: Final = "runner_conf"
"""The name of the settings in the worker's code."""


def session_zone() -> tzinfo | None:
    """Find the zone of times that name none, None where it is unknown; ValueError for one that is not known here."""
    name = _settings_of_worker() or _set()
    return None if name is None else zone_of(name)


def _settings_of_worker() -> str | None:
    """Find the settings of the worker, in the frame that has called and keeps them."""
    frame = sys._getframe()
    while (caller := frame.f_back) is not None:
        frame = caller
        if KEPT_AS in frame.f_code.co_varnames or KEPT_AS in frame.f_code.co_freevars:
            name = getattr(frame.f_locals.get(KEPT_AS), "timezone", None)
            if isinstance(name, str):
                return name
    return None


def _set() -> str | None:
    context = TaskContext.get()
    name: str | None = None if context is None else context.getLocalProperty(SETTING)
    return name
