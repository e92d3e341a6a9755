"""Every setting of topics, once: name, kind, default, unit, meaning, and the names by which a node sets it for all.

`TopicConfig` is the table, and what a topic runs with; `resolution.py` fills it in.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from riverlog.model.row import row, rows_of, same
from riverlog.model.setting import LONG_MAX, NodeSettingName, Setting, SettingType, Value

COMPRESSION_TYPE: Final = "compression.type"
NOT_RECOMPRESSED: Final = (
    "Batches are kept as they were sent, whatever this says: a node does not recompress. Set it in the producer."
)


class Durability(StrEnum):
    """When a record counts as written: in the page cache, or on the medium."""

    OS = "os"
    FSYNC = "fsync"


def _contains(word: str) -> Callable[[Value], bool]:
    return lambda value: isinstance(value, tuple) and word in value


def _equals(word: str) -> Callable[[Value], bool]:
    return lambda value: value == word


def _topic(
    name: str,
    kind: SettingType,
    default: object,
    doc: str,
    *,
    node: tuple[str | NodeSettingName, ...],
    read: Callable[[Value], object] = same,
    **more: Any,
) -> Any:
    """Declare a setting of topics and the names under which a node sets it for all of them."""
    names = tuple(each if isinstance(each, NodeSettingName) else NodeSettingName(each) for each in node)
    setting = Setting(name=name, kind=kind, default=str(default), doc=doc, node_names=names, dynamic=True, **more)
    return row(setting, read)


def _minutes(name: str) -> NodeSettingName:
    return NodeSettingName(name, 60_000)


def _hours(name: str) -> NodeSettingName:
    return NodeSettingName(name, 3_600_000)


def _listed_twice(value: Value) -> str | None:
    assert isinstance(value, tuple)
    return "it names the same policy twice" if len(set(value)) < len(value) else None


CLEANUP_POLICY: Final = Setting(
    name="cleanup.policy",
    kind=SettingType.LIST,
    default="delete",
    doc=(
        "What happens to old records: delete removes whole segments by age and size, compact keeps the newest "
        "record of each key. Both may be given. With neither, everything is kept."
    ),
    choices=("delete", "compact"),
    check=_listed_twice,
    node_names=(NodeSettingName("log.cleanup.policy"),),
    dynamic=True,
)


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """The settings of one topic, resolved: its own, else the node's, else the default."""

    cleanup_delete: bool = row(CLEANUP_POLICY, _contains("delete"))
    cleanup_compact: bool = row(CLEANUP_POLICY, _contains("compact"))
    compression_type: str = _topic(
        COMPRESSION_TYPE,
        SettingType.STRING,
        "producer",
        NOT_RECOMPRESSED,
        choices=("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"),
        node=(COMPRESSION_TYPE,),
    )
    delete_retention_ms: int = _topic(
        "delete.retention.ms",
        SettingType.LONG,
        86_400_000,
        "How long a compacted topic keeps the tombstone of a deleted key, so that slow readers still see it.",
        unit="ms",
        least=0,
        node=("log.cleaner.delete.retention.ms",),
    )
    durability: Durability = _topic(  # noqa: RUF009  (a row of the table is a dataclass field)
        "durability",
        SettingType.STRING,
        Durability.FSYNC,
        "When a record is acknowledged. fsync: after an fsync of its file, so that it survives a power "
        "failure. os: when it is in the page cache, as in Kafka.",
        choices=tuple(Durability),
        node=("durability",),
        read=lambda value: Durability(str(value)),
    )
    file_delete_delay_ms: int = _topic(
        "file.delete.delay.ms",
        SettingType.LONG,
        60_000,
        "How long the file of a removed segment stays on disk, so that whoever is reading it can finish.",
        unit="ms",
        least=0,
        node=("log.segment.delete.delay.ms",),
    )
    flush_messages: int = _topic(
        "flush.messages",
        SettingType.LONG,
        LONG_MAX,
        "After how many records a partition is flushed (fsync) at the latest.",
        unit="records",
        least=1,
        node=("log.flush.interval.messages",),
    )
    flush_ms: int = _topic(
        "flush.ms",
        SettingType.LONG,
        LONG_MAX,
        "How long a record may be in the page cache before it is flushed (fsync).",
        unit="ms",
        least=0,
        node=("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    )
    index_interval_bytes: int = _topic(
        "index.interval.bytes",
        SettingType.INT,
        4_096,
        "How many bytes of records lie between two entries of a segment's index.",
        unit="bytes",
        least=0,
        node=("log.index.interval.bytes",),
    )
    max_compaction_lag_ms: int = _topic(
        "max.compaction.lag.ms",
        SettingType.LONG,
        LONG_MAX,
        "How long a record of a compacted topic may wait before compaction must look at it.",
        unit="ms",
        least=1,
        node=("log.cleaner.max.compaction.lag.ms",),
    )
    max_message_bytes: int = _topic(
        "max.message.bytes",
        SettingType.INT,
        1_048_588,
        "The largest batch of records that is accepted, as it was sent, header included.",
        unit="bytes",
        least=0,
        node=("message.max.bytes",),
    )
    message_timestamp_after_max_ms: int = _topic(
        "message.timestamp.after.max.ms",
        SettingType.LONG,
        3_600_000,
        "How far a record's timestamp may be ahead of the node's clock.",
        unit="ms",
        least=0,
        node=("log.message.timestamp.after.max.ms",),
    )
    message_timestamp_before_max_ms: int = _topic(
        "message.timestamp.before.max.ms",
        SettingType.LONG,
        LONG_MAX,
        "How far a record's timestamp may be behind the node's clock.",
        unit="ms",
        least=0,
        node=("log.message.timestamp.before.max.ms",),
    )
    message_timestamp_log_append_time: bool = _topic(
        "message.timestamp.type",
        SettingType.STRING,
        "CreateTime",
        "Whose clock stamps a record: the producer's (CreateTime) or the node's (LogAppendTime).",
        choices=("CreateTime", "LogAppendTime"),
        node=("log.message.timestamp.type",),
        read=_equals("LogAppendTime"),
    )
    min_cleanable_dirty_ratio: float = _topic(
        "min.cleanable.dirty.ratio",
        SettingType.DOUBLE,
        0.5,
        "Which share of a compacted log must be new before it is compacted again.",
        least=0,
        most=1,
        node=("log.cleaner.min.cleanable.ratio",),
    )
    min_compaction_lag_ms: int = _topic(
        "min.compaction.lag.ms",
        SettingType.LONG,
        0,
        "How long a record of a compacted topic stays untouched, so that readers can see every change.",
        unit="ms",
        least=0,
        node=("log.cleaner.min.compaction.lag.ms",),
    )
    min_insync_replicas: int = _topic(
        "min.insync.replicas",
        SettingType.INT,
        2,
        "How many replicas must have a record before acks=all is answered; a topic with fewer replicas needs all "
        "of them. With 1 the topic goes on with reduced redundancy when nodes are lost.",
        least=1,
        node=("min.insync.replicas",),
    )
    record_validation_full: bool = _topic(
        "record.validation",
        SettingType.STRING,
        "header",
        "What is checked before a batch is accepted. header: its header, size and checksum. full: every "
        "record in it too, as Kafka does, for topics with untrusted writers. That costs about a microsecond "
        "per record.",
        choices=("header", "full"),
        node=("record.validation",),
        read=_equals("full"),
    )
    retention_bytes: int = _topic(
        "retention.bytes",
        SettingType.LONG,
        -1,
        "How large a partition may become before its oldest segments are removed; -1 sets no limit.",
        unit="bytes",
        least=-1,
        node=("log.retention.bytes",),
    )
    retention_ms: int = _topic(
        "retention.ms",
        SettingType.LONG,
        604_800_000,
        "How long records are kept; segments whose newest record is older are removed. -1 keeps them for ever.",
        unit="ms",
        least=-1,
        node=("log.retention.ms", _minutes("log.retention.minutes"), _hours("log.retention.hours")),
    )
    segment_bytes: int = _topic(
        "segment.bytes",
        SettingType.INT,
        1_073_741_824,
        "The size at which a segment is closed and the next one begun.",
        unit="bytes",
        least=1_024,
        node=("log.segment.bytes",),
    )
    segment_index_bytes: int = _topic(
        "segment.index.bytes",
        SettingType.INT,
        10_485_760,
        "How large a segment's index may become; a full index closes the segment.",
        unit="bytes",
        least=24,
        node=("log.index.size.max.bytes",),
    )
    segment_jitter_ms: int = _topic(
        "segment.jitter.ms",
        SettingType.LONG,
        0,
        "By how much, at most, a segment is closed early, so that not all partitions do so at the same moment.",
        unit="ms",
        least=0,
        node=("log.roll.jitter.ms", _hours("log.roll.jitter.hours")),
    )
    segment_ms: int = _topic(
        "segment.ms",
        SettingType.LONG,
        604_800_000,
        "The age at which a segment is closed even if it is not full, so that retention can remove it.",
        unit="ms",
        least=1,
        node=("log.roll.ms", _hours("log.roll.hours")),
    )
    unclean_leader_election_enable: bool = _topic(
        "unclean.leader.election.enable",
        SettingType.BOOLEAN,
        False,
        "Whether a replica that lacks records may lead when no other is left: the topic goes on, and acknowledged "
        "records may be lost.",
        node=("unclean.leader.election.enable",),
    )


TOPIC_SETTINGS: Final[Mapping[str, Setting]] = MappingProxyType(rows_of(TopicConfig))
DEFAULT_TOPIC_CONFIG: Final = TopicConfig()
