"""What a program may say about reading: the options of Spark's Kafka source, and a few of ours.

Everything is understood before anything is asked of a cluster, so that a mistake is reported when the program makes it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from riverlog.arrow.positions import PartitionEnd
from riverlog.spark.options import BadOption, ClientOptions, Options, check_names, cluster_options
from riverlog.spark.source.offset_limits import (
    CHOICES,
    OffsetLimit,
    TopicSelection,
    check_batch,
    offset_limit,
    topic_selection,
)

if TYPE_CHECKING:
    from riverlog.client.offsets import IsolationLevel

CLIENT_ID: Final = "riverlog-spark"


class BadValues(Enum):
    """What becomes of a record whose value is not what the schema says."""

    FAIL = "fail"
    NULL = "null"
    SKIP = "skip"
    DEAD_LETTER = "dead-letter"


class JsonValues(NamedTuple):
    """Values are JSON: the columns in them, as Spark writes a schema, and what becomes of those that are not."""

    schema: str
    bad: BadValues
    dead_letter_topic: str | None


@dataclass(frozen=True)
class SourceOptions:
    """What to read."""

    cluster: ClientOptions
    topics: TopicSelection
    starting: OffsetLimit
    ending: OffsetLimit
    by_time_or_latest: bool
    """Whether to begin at the end where no record is as young as a starting time."""
    fails_on_data_loss: bool
    reads_committed: bool
    columns: tuple[str, ...] | None
    has_headers: bool
    json: JsonValues | None
    records_max: int | None
    """Of a batch of a stream."""
    records_min: int | None
    delay_seconds_max: float
    """How long a stream waits for `records_min`."""
    parts_min: int | None
    part_records_max: int | None
    wait_seconds_max: float | None
    """How long a plan waits for the cluster, where the program says so."""
    stall_seconds_max: float
    """How long a task waits for bytes."""
    reader: Mapping[str, Any]
    """Settings of the reader in a task."""

    @property
    def isolation(self) -> "IsolationLevel":
        """Return the client's value, which is loaded where it is needed and not before."""
        from riverlog.client.offsets import IsolationLevel

        return IsolationLevel(self.reads_committed)


def batch_options(given: Mapping[str, str]) -> SourceOptions:
    """Understand the options of a batch."""
    found = _understood(Options(given), starting=PartitionEnd.EARLIEST)
    check_batch(found.starting, found.ending)
    return found


def stream_options(given: Mapping[str, str]) -> SourceOptions:
    """Understand the options of a stream, which has no end."""
    options = Options(given)
    for name in _ENDS:
        if options.text(name) is not None:
            raise BadOption(name, None, "a stream has no end; leave it out, or read a batch")
    return _understood(options, starting=PartitionEnd.LATEST)


def source_options(given: Mapping[str, str]) -> SourceOptions:
    """Understand options as far as the columns depend on them, of a batch or a stream."""
    return _understood(Options(given), starting=PartitionEnd.EARLIEST)


def _understood(options: Options, *, starting: PartitionEnd) -> SourceOptions:
    check_names(options, KNOWN, REFUSED)
    reach = cluster_options(options)
    poll_ms, wait_ms = options.number("kafkaConsumer.pollTimeoutMs"), options.number("kafka.default.api.timeout.ms")
    fetch_bytes = options.number("kafka.max.partition.fetch.bytes")
    records_max, records_min = options.number("maxOffsetsPerTrigger"), options.number("minOffsetsPerTrigger")
    if records_max is not None and records_min is not None and records_min > records_max:
        raise BadOption("minOffsetsPerTrigger", str(records_min), f"maxOffsetsPerTrigger={records_max} allows fewer")
    return SourceOptions(
        cluster=ClientOptions(reach.bootstrap, {"client_id": CLIENT_ID, **reach.client}),
        topics=topic_selection(options),
        starting=offset_limit(options, "starting", default=starting),
        ending=offset_limit(options, "ending", default=PartitionEnd.LATEST),
        by_time_or_latest=options.choice("startingOffsetsByTimestampStrategy", ("error", "latest"), default="error")
        == "latest",
        fails_on_data_loss=options.flag("failOnDataLoss", default=True),
        reads_committed=options.choice("kafka.isolation.level", _ISOLATION, default="read_committed")
        == "read_committed",
        columns=_columns(options),
        has_headers=options.flag("includeHeaders", default=False),
        json=_json_values(options),
        records_max=records_max,
        records_min=records_min,
        delay_seconds_max=_seconds(options, "maxTriggerDelay", default=DELAY_SECONDS_MAX),
        parts_min=options.number("minPartitions"),
        part_records_max=options.number("maxRecordsPerPartition"),
        wait_seconds_max=None if wait_ms is None else wait_ms / 1000,
        stall_seconds_max=STALL_SECONDS_MAX if poll_ms is None else poll_ms / 1000,
        reader={} if fetch_bytes is None else {"partition_bytes_max": fetch_bytes},
    )


def _columns(options: Options) -> tuple[str, ...] | None:
    text = options.text("columns")
    return None if text is None else tuple(name.strip() for name in text.split(",") if name.strip())


def _json_values(options: Options) -> JsonValues | None:
    topic = options.text("deadLetterTopic")
    bad = BadValues(options.choice("badValues", (each.value for each in BadValues), default=_default_bad(topic).value))
    if options.choice("value.format", ("binary", "json"), default="binary") == "binary":
        for name in ("value.schema", "badValues", "deadLetterTopic"):
            if options.text(name) is not None:
                raise BadOption(name, options.text(name), "it is for value.format=json; set that, too")
        return None
    if (bad is BadValues.DEAD_LETTER) != (topic is not None):
        missing = "name a deadLetterTopic, too" if topic is None else f"deadLetterTopic={topic!r} would stay empty"
        raise BadOption("badValues", bad.value, missing)
    return JsonValues(options.text("value.schema") or "", bad, topic)


def _default_bad(topic: str | None) -> BadValues:
    return BadValues.FAIL if topic is None else BadValues.DEAD_LETTER


def _seconds(options: Options, name: str, *, default: float) -> float:
    text = options.text(name)
    if text is None:
        return default
    found = re.fullmatch(r"(\d+)\s*([a-z]+)", text.lower())
    if found is None or found[2] not in _UNITS:
        raise BadOption(name, text, "write a time as in 30s, 15m or 1h")
    return int(found[1]) * _UNITS[found[2]]


STALL_SECONDS_MAX: Final = 120.0
DELAY_SECONDS_MAX: Final = 900.0

_ISOLATION: Final = ("read_committed", "read_uncommitted")
_UNITS: Final = {
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 0.001),
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hour", "hours"), 3600.0),
    **dict.fromkeys(("d", "day", "days"), 86400.0),
}
_ENDS: Final = ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp")

KNOWN: Final = (
    *CHOICES,
    *_ENDS,
    "startingOffsets",
    "startingOffsetsByTimestamp",
    "startingTimestamp",
    "startingOffsetsByTimestampStrategy",
    "failOnDataLoss",
    "includeHeaders",
    "columns",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "minPartitions",
    "maxRecordsPerPartition",
    "value.format",
    "value.schema",
    "badValues",
    "deadLetterTopic",
    "kafka.isolation.level",
    "kafka.max.partition.fetch.bytes",
    "kafka.default.api.timeout.ms",
    "kafkaConsumer.pollTimeoutMs",
    "groupIdPrefix",
    "kafka.group.id",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
)
"""Every option for reading, beside those of `options`."""

REFUSED: Final = {
    "kafka.auto.offset.reset": "Spark keeps the offsets; set startingOffsets instead",
    "kafka.enable.auto.commit": "Spark keeps the offsets, and commits none; leave it out",
    "topic": "that is where to write; to read, set subscribe",
    "path": "a topic is no path; set subscribe",
    "provider": "a topic is no table of a catalog; CREATE TEMPORARY VIEW orders USING riverlog OPTIONS (…)",
}
