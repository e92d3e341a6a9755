"""Turns decoded rows into what Spark was promised: as they are, or with values that are JSON as columns.

A value that is not what the schema says fails the task, is null, is left out, or goes to the topic for dead letters: as
it was, with headers that say where it came from and what is wrong. Those are acknowledged before Spark sees the rows
around them. A task that is run again sends them again; whoever reads them knows a record by its source, partition and
offset.
"""

from collections.abc import Mapping
from datetime import tzinfo
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from riverlog.arrow.background_loop import BackgroundLoop
from riverlog.model.ids import TopicPartition
from riverlog.spark.source.columns import Columns
from riverlog.spark.source.options import BadValues, SourceOptions
from riverlog.spark.worker.time_zone import session_zone

if TYPE_CHECKING:
    import pyarrow as pa

    from riverlog.client.producer.producer import Producer

DEAD_LETTER_HEADERS: Final = ("source.topic", "source.partition", "source.offset", "error")


class BadRecordValue(ValueError):
    """A record's value is not what the schema says."""

    def __init__(self, partition: TopicPartition, offset: int, reason: str) -> None:
        super().__init__(
            f"the value at offset {offset} of {partition} is not what value.schema says: {reason}. "
            "Set badValues=null to read null there, or deadLetterTopic to have such records written to a topic"
        )


class Values:
    """Shapes rows; use it as a context manager."""

    def __init__(self, options: SourceOptions, columns: Columns, background: BackgroundLoop) -> None:
        self._options = options
        self._columns = columns
        self._background = background
        self._producer: Producer | None = None
        self._zone = _zone(columns.fields) if columns.fields is not None else None

    def shaped(self, decoded: "pa.RecordBatch", partition: TopicPartition) -> "pa.RecordBatch":
        """Return the columns that Spark was promised, without rows that went elsewhere."""
        given, fields, json = self._columns.given, self._columns.fields, self._options.json
        if fields is None or json is None:
            return type(decoded).from_arrays(decoded.columns, schema=given)
        from riverlog.arrow.json.values import typed

        found = typed(decoded["value"], fields, self._zone)
        by_name: dict[str, Any] = dict(zip(fields.names, found.values.flatten(), strict=True))
        arrays = [by_name[name] if name in by_name else decoded[name] for name in given.names]
        rows = type(decoded).from_arrays(arrays, schema=given)
        if not found.bad or json.bad is BadValues.NULL:
            return rows
        if json.bad is BadValues.FAIL:
            row, reason = next(iter(found.bad.items()))
            raise BadRecordValue(partition, decoded["offset"][row].as_py(), reason)
        if json.bad is BadValues.DEAD_LETTER:
            assert json.dead_letter_topic is not None, "the options were checked"
            self._background.run(self._send(json.dead_letter_topic, decoded, partition, found.bad))
        return _without(rows, found.bad)

    async def _send(
        self, topic: str, decoded: "pa.RecordBatch", partition: TopicPartition, bad: Mapping[int, str]
    ) -> None:
        """Write dead letters and wait until they are acknowledged."""
        from riverlog.client.producer.producer import Producer

        if self._producer is None:
            where = self._options.cluster
            self._producer = await Producer(where.bootstrap, **where.client).start()
        for row, reason in bad.items():
            key, value, offset = (decoded[name][row].as_py() for name in ("key", "value", "offset"))
            headers = [(each["key"], each["value"]) for each in decoded["headers"][row].as_py() or ()]
            origin = (partition.topic, str(partition.partition), str(offset), reason)
            headers += [(name, text.encode()) for name, text in zip(DEAD_LETTER_HEADERS, origin, strict=True)]
            await self._producer.ready(len(value or b"") + len(key or b""))
            self._producer.send_soon(topic, value, key=key, headers=headers)
        await self._producer.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if self._producer is not None:
            self._background.run(self._producer.close())


def _zone(fields: "pa.Schema") -> tzinfo | None:
    """Find the zone of times, where there may be any: one that is not known here matters to nobody else."""
    from riverlog.arrow.json.leaves import needs_zone

    return session_zone() if any(needs_zone(field.type) for field in fields) else None


def _without(rows: "pa.RecordBatch", bad: Mapping[int, str]) -> "pa.RecordBatch":
    import numpy as np
    import pyarrow as pa

    wanted = np.ones(rows.num_rows, np.bool_)
    wanted[list(bad)] = False
    return rows.filter(pa.array(wanted))
