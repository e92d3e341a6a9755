"""Records to columns without numba: a list per column. Slow, short, and what the kernel is compared with."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa

from riverlog.arrow.columns import MICROSECONDS, TIMESTAMP_MS_MAX, TYPES, Cut
from riverlog.arrow.decoding.runs import Run
from riverlog.client.errors import CorruptRecords
from riverlog.model.ids import TopicPartition
from riverlog.records.batch import BatchHeader
from riverlog.records.errors import CorruptBatch
from riverlog.records.record import Record, records_in


def record_batch(runs: Sequence[Run], partition: TopicPartition, schema: pa.Schema, cut: Cut) -> pa.RecordBatch:
    """Decode a portion to one Arrow batch, which may have no rows."""
    rows: list[tuple[BatchHeader, Record]] = []
    for header, content in runs:
        try:
            records = records_in(content, header)
        except CorruptBatch as problem:
            raise CorruptRecords(partition, header.base_offset, problem.message) from problem
        rows += [(header, record) for record in records if _is_wanted(record, cut)]
    arrays = [_array(name, rows, partition) for name in schema.names]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _is_wanted(record: Record, cut: Cut) -> bool:
    return cut.from_offset <= record.offset < cut.until_offset and record.timestamp >= cut.timestamp_ms_min


def _array(name: str, rows: Sequence[tuple[BatchHeader, Record]], partition: TopicPartition) -> pa.Array:
    match name:
        case "topic":
            cells: list[Any] = [partition.topic] * len(rows)
        case "partition":
            cells = [partition.partition] * len(rows)
        case "timestampType":
            cells = [int(header.timestamp_type) for header, _ in rows]
        case _:
            cell = _CELLS[name]
            cells = [cell(record) for _, record in rows]
    return pa.array(cells, TYPES[name])


def _headers(record: Record) -> list[dict[str, Any]] | None:
    return [header._asdict() for header in record.headers] or None


def _microseconds(record: Record) -> int | None:
    if not -TIMESTAMP_MS_MAX <= record.timestamp <= TIMESTAMP_MS_MAX:
        return None
    return record.timestamp * MICROSECONDS


_CELLS: Final[dict[str, Callable[[Record], Any]]] = {
    "key": lambda record: record.key,
    "value": lambda record: record.value,
    "offset": lambda record: record.offset,
    "timestamp": _microseconds,
    "headers": _headers,
}
