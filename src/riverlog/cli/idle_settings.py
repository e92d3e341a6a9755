"""Settings of a topic that a riverlog node remembers and shows, and that change nothing."""

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from riverlog.model.resolution import NO_MEANING
from riverlog.model.topic_config import COMPRESSION_TYPE, NOT_RECOMPRESSED

if TYPE_CHECKING:
    from riverlog import Admin

AS_SENT: Final = "producer"


async def name_idle_settings(admin: "Admin", topic: str, configs: Mapping[str, str | None]) -> None:
    """Print a line about each setting that changes nothing; other clusters document theirs in other words."""
    chosen = {name: value for name, value in configs.items() if value is not None}
    wanted = [name for name, value in chosen.items() if (name, value) != (COMPRESSION_TYPE, AS_SENT)]
    if not wanted:
        return
    for name, entry in (await admin.describe_configs(topic=topic, names=wanted)).items():
        if entry.documentation in (NO_MEANING, NOT_RECOMPRESSED):
            print(f"riverlog: {name}={chosen[name]} changes nothing. {entry.documentation}", file=sys.stderr)
