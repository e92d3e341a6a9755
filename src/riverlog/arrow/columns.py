"""The columns of a record, with the names and types of Spark's Kafka source.

    key binary · value binary · topic string · partition int32 · offset int64 · timestamp timestamp[us, UTC]
    timestampType int32 (0 the producer's, 1 the broker's) · headers list<struct<key: string, value: binary>>

A record without headers has null there. A time that has no microseconds in 64 bits is null.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from riverlog.arrow.extras import need
from riverlog.model.ids import Offset

if TYPE_CHECKING:
    import pyarrow as pa
else:
    pa = need("pyarrow")

HEADERS_TYPE: Final = pa.list_(
    pa.field("element", pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
)
TIMESTAMP_TYPE: Final = pa.timestamp("us", tz="UTC")
TYPES: Final = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": TIMESTAMP_TYPE,
    "timestampType": pa.int32(),
    "headers": HEADERS_TYPE,
}
"""Every column there is, in Spark's order."""
USUAL: Final = tuple(name for name in TYPES if name != "headers")
"""What is read without a choice, as in Spark."""

MICROSECONDS: Final = 1_000
TIMESTAMP_MS_MAX: Final = (2**63 - 1) // MICROSECONDS
OFFSET_MAX: Final = 2**63 - 1


def schema_of(columns: Iterable[str]) -> pa.Schema:
    """Return the schema of some columns, in this order; a name that does not exist is a ValueError."""
    chosen = tuple(columns)
    for name in chosen:
        if name not in TYPES:
            raise ValueError(f"there is no column {name!r}; there are {', '.join(TYPES)}")
    if len(set(chosen)) < len(chosen) or not chosen:
        raise ValueError(f"at least one column is named, and each once: {', '.join(chosen) or 'none were named'}")
    return pa.schema([pa.field(name, TYPES[name]) for name in chosen])


class Cut(NamedTuple):
    """Which rows of a partition are wanted: offsets from one up to another, and no record older than a time."""

    from_offset: Offset
    until_offset: Offset
    timestamp_ms_min: int = -(2**63)
