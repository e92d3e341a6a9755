"""Where the streams of a query begin that was reset: what `riverlog pipelines reset` left in its checkpoint.

Spark asks a source for its beginning only where there is no checkpoint, so this matters for the first batch alone.
"""

from collections.abc import Mapping
from typing import Final

from riverlog.checkpoints.files.paths import parse_location
from riverlog.checkpoints.files.refusals import RequestRefused
from riverlog.checkpoints.pipelines.starts import FILE, Start, read_start
from riverlog.checkpoints.remote import RemoteStore

_BEGINS: Final = frozenset(
    {"startingoffsets", "startingtimestamp", "startingoffsetsbytimestamp", "startingoffsetsbytimestampstrategy"}
)


def start_of_query(checkpoint: str) -> Start | None:
    """Read where a query with this checkpoint is to begin; None where nobody has said."""
    parsed = parse_location(checkpoint)
    if parsed.scheme != "webhdfs":
        return None
    try:
        with RemoteStore(parsed.address) as store:
            return read_start(b"".join(store.read(f"{parsed.path.rstrip('/')}/{FILE}")))
    except RequestRefused as refusal:
        if refusal.name == "FileNotFoundException":
            return None
        raise


def beginning_at(options: Mapping[str, str], start: Start | None) -> dict[str, str]:
    """Return the options of a source that begins there, whatever they said about it before."""
    if start is None:
        return dict(options)
    kept = {name: value for name, value in options.items() if name.lower() not in _BEGINS}
    if start.timestamp_ms is None:
        return {**kept, "startingOffsets": start.edge or "earliest"}
    return {**kept, "startingTimestamp": str(start.timestamp_ms), "startingOffsetsByTimestampStrategy": "latest"}
