"""Where a query begins that was reset: a small file in its checkpoint, which Spark passes over. Pure.

Spark asks a source where to begin when there is no checkpoint, and the source says what the program says. A pipeline
looks here first: for the earliest or latest offsets, or a time.
"""

import json
from typing import Any, Final, Literal, NamedTuple

from riverlog.checkpoints.files.refusals import RequestRefused

FILE: Final = "riverlog-start"
"""The name of the file in the checkpoint's folder."""
_TIME_MS_MAX: Final = 2**63 - 1


class Start(NamedTuple):
    """The earliest or latest offsets, or the first record at or after a time."""

    edge: Literal["earliest", "latest"] | None = None
    timestamp_ms: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {name: value for name, value in self._asdict().items() if value is not None}

    def content(self) -> bytes:
        """Return the content of the file."""
        return json.dumps(self.to_json()).encode("ascii")


def start_of(facts: Any) -> Start:
    """Read a start; RequestRefused where it is none."""
    match facts:
        case {"edge": ("earliest" | "latest") as edge, **others} if not others:
            return Start(edge=edge)
        case {"timestamp_ms": int(moment), **others} if not others and not isinstance(moment, bool):
            if 0 <= moment <= _TIME_MS_MAX:
                return Start(timestamp_ms=moment)
    raise RequestRefused.illegal("start is an edge, earliest or latest, or a timestamp_ms")


def read_start(content: bytes) -> Start:
    """Read the file; RequestRefused where it is none of ours."""
    try:
        facts = json.loads(content)
    except (ValueError, RecursionError):
        raise RequestRefused.illegal(f"{FILE} is not JSON; reset the pipeline again") from None
    return start_of(facts)
