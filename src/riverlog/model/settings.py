"""Every setting, once: name, kind, default, unit, meaning. Replies, documentation and checks derive from here.

The two classes are the table: each field holds a setting's checked value and carries its row as metadata.
`TopicConfig` is what a topic runs with, `NodeSettings` what a node runs with; `resolve.py` fills them in. Names
are Kafka's wherever Kafka has the setting.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from riverlog.model.endpoints import PORT_MAX, Endpoint, read_endpoints
from riverlog.model.ids import NodeId
from riverlog.model.setting import INT_MAX, LONG_MAX, Kind, NodeName, Setting, Value


class Durability(StrEnum):
    """When a record counts as written: in the page cache, or on the medium."""

    OS = "os"
    FSYNC = "fsync"


def _same(value: Value) -> Value:
    return value


def _contains(word: str) -> Callable[[Value], bool]:
    return lambda value: isinstance(value, tuple) and word in value


def _equals(word: str) -> Callable[[Value], bool]:
    return lambda value: value == word


def _row(setting: Setting, read: Callable[[Value], object] = _same) -> Any:
    """Make a dataclass field whose default is the setting's and whose metadata is the setting itself."""
    default = read(setting.read(setting.default))
    return field(default=default, metadata={"setting": setting, "read": read})


def _topic(
    name: str,
    kind: Kind,
    default: object,
    doc: str,
    *,
    node: tuple[str | NodeName, ...],
    read: Callable[[Value], object] = _same,
    **more: Any,
) -> Any:
    """Declare a setting of topics and the names under which a node sets it for all of them."""
    names = tuple(each if isinstance(each, NodeName) else NodeName(each) for each in node)
    setting = Setting(name=name, kind=kind, default=str(default), doc=doc, node_names=names, dynamic=True, **more)
    return _row(setting, read)


def _node(
    name: str,
    kind: Kind,
    default: object,
    doc: str,
    *,
    or_else: tuple[str, ...] = (),
    read: Callable[[Value], object] = _same,
    **more: Any,
) -> Any:
    """Declare a setting of nodes and the older names that stand for it."""
    names = tuple(NodeName(each) for each in (name, *or_else))
    text = str(default).lower() if isinstance(default, bool) else str(default)
    return _row(Setting(name=name, kind=kind, default=text, doc=doc, node_names=names, **more), read)


def _minutes(name: str) -> NodeName:
    return NodeName(name, 60_000)


def _hours(name: str) -> NodeName:
    return NodeName(name, 3_600_000)


def _listed_twice(value: Value) -> str | None:
    assert isinstance(value, tuple)
    return "it names the same policy twice" if len(set(value)) < len(value) else None


CLEANUP_POLICY: Final = Setting(
    name="cleanup.policy",
    kind=Kind.LIST,
    default="delete",
    doc="What happens to old records: delete removes whole segments by age and size, compact keeps the newest "
    "record of each key; both may be given, and with none everything is kept.",
    choices=("delete", "compact"),
    check=_listed_twice,
    node_names=(NodeName("log.cleanup.policy"),),
    dynamic=True,
)


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """The settings of one topic, resolved: its own, else the node's, else the default."""

    cleanup_delete: bool = _row(CLEANUP_POLICY, _contains("delete"))
    cleanup_compact: bool = _row(CLEANUP_POLICY, _contains("compact"))
    compression_type: str = _topic(
        "compression.type",
        Kind.STRING,
        "producer",
        "How batches are compressed on disk; producer keeps each batch as it was sent.",
        choices=("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"),
        node=("compression.type",),
    )
    delete_retention_ms: int = _topic(
        "delete.retention.ms",
        Kind.LONG,
        86_400_000,
        "How long a compacted topic keeps the mark that a key was deleted, so that slow readers can still see it.",
        unit="ms",
        least=0,
        node=("log.cleaner.delete.retention.ms",),
    )
    durability: Durability = _topic(  # noqa: RUF009  (a row of the table is a dataclass field)
        "durability",
        Kind.STRING,
        Durability.FSYNC,
        "When a record counts as written: fsync, once it is on the medium, so that it survives a power failure; "
        "os, once it is in the page cache, as in Kafka.",
        choices=tuple(Durability),
        node=("durability",),
        read=lambda value: Durability(str(value)),
    )
    file_delete_delay_ms: int = _topic(
        "file.delete.delay.ms",
        Kind.LONG,
        60_000,
        "How long the file of a removed segment stays on disk, so that whoever is reading it can finish.",
        unit="ms",
        least=0,
        node=("log.segment.delete.delay.ms",),
    )
    flush_messages: int = _topic(
        "flush.messages",
        Kind.LONG,
        LONG_MAX,
        "After how many records a partition is flushed to the medium at the latest.",
        unit="records",
        least=1,
        node=("log.flush.interval.messages",),
    )
    flush_ms: int = _topic(
        "flush.ms",
        Kind.LONG,
        LONG_MAX,
        "How long a record may lie in the page cache before it is flushed to the medium.",
        unit="ms",
        least=0,
        node=("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    )
    index_interval_bytes: int = _topic(
        "index.interval.bytes",
        Kind.INT,
        4_096,
        "How many bytes of records lie between two entries of a segment's index.",
        unit="bytes",
        least=0,
        node=("log.index.interval.bytes",),
    )
    max_compaction_lag_ms: int = _topic(
        "max.compaction.lag.ms",
        Kind.LONG,
        LONG_MAX,
        "How long a record of a compacted topic may wait before compaction must look at it.",
        unit="ms",
        least=1,
        node=("log.cleaner.max.compaction.lag.ms",),
    )
    max_message_bytes: int = _topic(
        "max.message.bytes",
        Kind.INT,
        1_048_588,
        "The largest batch of records that is accepted, as it was sent, header included.",
        unit="bytes",
        least=0,
        node=("message.max.bytes",),
    )
    message_timestamp_after_max_ms: int = _topic(
        "message.timestamp.after.max.ms",
        Kind.LONG,
        3_600_000,
        "How far a record's timestamp may be ahead of the node's clock.",
        unit="ms",
        least=0,
        node=("log.message.timestamp.after.max.ms",),
    )
    message_timestamp_before_max_ms: int = _topic(
        "message.timestamp.before.max.ms",
        Kind.LONG,
        LONG_MAX,
        "How far a record's timestamp may lie behind the node's clock.",
        unit="ms",
        least=0,
        node=("log.message.timestamp.before.max.ms",),
    )
    message_timestamp_log_append_time: bool = _topic(
        "message.timestamp.type",
        Kind.STRING,
        "CreateTime",
        "Whose clock stamps a record: the producer's (CreateTime) or the node's (LogAppendTime).",
        choices=("CreateTime", "LogAppendTime"),
        node=("log.message.timestamp.type",),
        read=_equals("LogAppendTime"),
    )
    min_cleanable_dirty_ratio: float = _topic(
        "min.cleanable.dirty.ratio",
        Kind.DOUBLE,
        0.5,
        "Which share of a compacted log must be new before it is compacted again.",
        least=0,
        most=1,
        node=("log.cleaner.min.cleanable.ratio",),
    )
    min_compaction_lag_ms: int = _topic(
        "min.compaction.lag.ms",
        Kind.LONG,
        0,
        "How long a record of a compacted topic stays untouched, so that readers can see every change.",
        unit="ms",
        least=0,
        node=("log.cleaner.min.compaction.lag.ms",),
    )
    min_insync_replicas: int = _topic(
        "min.insync.replicas",
        Kind.INT,
        2,
        "How many replicas must have a record before acks=all is answered; a topic with fewer replicas needs all "
        "of them. With 1 the topic goes on with reduced redundancy when nodes are lost.",
        least=1,
        node=("min.insync.replicas",),
    )
    retention_bytes: int = _topic(
        "retention.bytes",
        Kind.LONG,
        -1,
        "How large a partition may become before its oldest segments are removed; -1 sets no limit.",
        unit="bytes",
        least=-1,
        node=("log.retention.bytes",),
    )
    retention_ms: int = _topic(
        "retention.ms",
        Kind.LONG,
        604_800_000,
        "How long records are kept; segments whose newest record is older are removed. -1 keeps them for ever.",
        unit="ms",
        least=-1,
        node=("log.retention.ms", _minutes("log.retention.minutes"), _hours("log.retention.hours")),
    )
    segment_bytes: int = _topic(
        "segment.bytes",
        Kind.INT,
        1_073_741_824,
        "The size at which a segment is closed and the next one begun.",
        unit="bytes",
        least=1_024,
        node=("log.segment.bytes",),
    )
    segment_index_bytes: int = _topic(
        "segment.index.bytes",
        Kind.INT,
        10_485_760,
        "How large a segment's index may become; a full index closes the segment.",
        unit="bytes",
        least=24,
        node=("log.index.size.max.bytes",),
    )
    segment_jitter_ms: int = _topic(
        "segment.jitter.ms",
        Kind.LONG,
        0,
        "By how much, at most, a segment is closed early, so that not all partitions do so at the same moment.",
        unit="ms",
        least=0,
        node=("log.roll.jitter.ms", _hours("log.roll.jitter.hours")),
    )
    segment_ms: int = _topic(
        "segment.ms",
        Kind.LONG,
        604_800_000,
        "The age at which a segment is closed even if it is not full, so that retention can remove it.",
        unit="ms",
        least=1,
        node=("log.roll.ms", _hours("log.roll.hours")),
    )


@dataclass(frozen=True, slots=True)
class Layers:
    """What was set for a node, by where it was set; the first that says something wins."""

    node: Mapping[str, str] = field(default_factory=dict)
    """Set for this node while it ran."""
    cluster: Mapping[str, str] = field(default_factory=dict)
    """Set for all nodes while they ran."""
    static: Mapping[str, str] = field(default_factory=dict)
    """Given at the start: file, variables, flags."""
    profile: Mapping[str, str] = field(default_factory=dict)
    """Defaults of the node's profile that differ from the table's."""


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """The settings of one node, resolved: what was set while it ran, else what it was started with, else the
    default of its profile."""

    advertised_listeners: tuple[Endpoint, ...] = _node(
        "advertised.listeners",
        Kind.LIST,
        "",
        "The addresses that clients are told to connect to; those of the listeners where nothing is given.",
        read=read_endpoints,
    )
    auto_create_topics_enable: bool = _node(
        "auto.create.topics.enable",
        Kind.BOOLEAN,
        True,
        "Whether a topic comes into being when a client first asks for it.",
    )
    broker_rack: str = _node(
        "broker.rack",
        Kind.STRING,
        "",
        "Where this node stands; replicas are spread over racks and readers prefer their own.",
    )
    connection_window_bytes: int = _node(
        "connection.window.bytes",
        Kind.INT,
        16_777_216,
        "How many bytes of requests one connection may have unanswered; at the limit it is not read from. A single "
        "request may be larger.",
        unit="bytes",
        least=65_536,
        most=INT_MAX,
    )
    connections_max_idle_ms: int = _node(
        "connections.max.idle.ms",
        Kind.LONG,
        600_000,
        "How long a connection may be silent before it is closed.",
        unit="ms",
        least=1,
    )
    controller_listener_names: tuple[str, ...] = _node(
        "controller.listener.names",
        Kind.LIST,
        "",
        "Listeners that are for controllers, not for clients; a node that is its own quorum does not open them.",
    )
    default_replication_factor: int = _node(
        "default.replication.factor",
        Kind.INT,
        3,
        "Replicas of a topic that is created without saying how many; as many as there are nodes if that is less.",
        least=1,
        most=32_767,
    )
    delete_topic_enable: bool = _node(
        "delete.topic.enable",
        Kind.BOOLEAN,
        True,
        "Whether topics can be deleted.",
    )
    fetch_max_bytes: int = _node(
        "fetch.max.bytes",
        Kind.INT,
        57_671_680,
        "The most bytes of records in one answer to a fetch, whatever the client asks for.",
        unit="bytes",
        least=1_024,
    )
    group_initial_rebalance_delay_ms: int = _node(
        "group.initial.rebalance.delay.ms",
        Kind.INT,
        3_000,
        "How long a new consumer group waits for more members before partitions are handed out.",
        unit="ms",
        least=0,
    )
    listener_security_protocol_map: tuple[str, ...] = _node(
        "listener.security.protocol.map",
        Kind.LIST,
        "PLAINTEXT:PLAINTEXT",
        "Which protocol each listener speaks, as NAME:PROTOCOL; PLAINTEXT is the one that exists.",
    )
    listeners: tuple[Endpoint, ...] = _node(
        "listeners",
        Kind.LIST,
        "PLAINTEXT://:9092",
        "Where the node listens, as NAME://host:port; no host means every address, port 0 takes a free one.",
        read=read_endpoints,
    )
    log_cleaner_backoff_ms: int = _node(
        "log.cleaner.backoff.ms",
        Kind.LONG,
        15_000,
        "How long compaction rests when no log is worth compacting.",
        unit="ms",
        least=1,
        dynamic=True,
    )
    log_cleaner_dedupe_buffer_size: int = _node(
        "log.cleaner.dedupe.buffer.size",
        Kind.LONG,
        134_217_728,
        "How much memory a run of compaction may take for keys; what does not fit waits for the next run.",
        unit="bytes",
        least=1_048_576,
        dynamic=True,
    )
    log_cleaner_enable: bool = _node(
        "log.cleaner.enable",
        Kind.BOOLEAN,
        True,
        "Whether topics with cleanup.policy=compact are compacted.",
    )
    log_cleaner_io_max_bytes_per_second: float = _node(
        "log.cleaner.io.max.bytes.per.second",
        Kind.DOUBLE,
        1.7976931348623157e308,
        "How many bytes compaction may read and write in a second.",
        least=1,
        dynamic=True,
    )
    log_dirs: tuple[str, ...] = _node(
        "log.dirs",
        Kind.LIST,
        "./riverlog-data",
        "The folders that hold the data; new partitions go to the one with the fewest.",
        or_else=("log.dir",),
    )
    log_flush_offset_checkpoint_interval_ms: int = _node(
        "log.flush.offset.checkpoint.interval.ms",
        Kind.INT,
        60_000,
        "How often the node notes up to where its logs are on the medium: recovery starts there.",
        unit="ms",
        least=1,
    )
    log_flush_start_offset_checkpoint_interval_ms: int = _node(
        "log.flush.start.offset.checkpoint.interval.ms",
        Kind.INT,
        60_000,
        "How often the node notes where its logs begin.",
        unit="ms",
        least=1,
    )
    log_retention_check_interval_ms: int = _node(
        "log.retention.check.interval.ms",
        Kind.LONG,
        300_000,
        "How often the node looks for segments that are old or large enough to be removed.",
        unit="ms",
        least=1,
    )
    max_connections: int = _node(
        "max.connections",
        Kind.INT,
        10_000,
        "How many clients may be connected at a time; one more is turned away.",
        least=1,
        dynamic=True,
    )
    max_request_partition_size_limit: int = _node(
        "max.request.partition.size.limit",
        Kind.INT,
        2_000,
        "The most partitions in one answer that describes topics; the client asks again for the rest.",
        least=1,
    )
    metadata_log_max_record_bytes_between_snapshots: int = _node(
        "metadata.log.max.record.bytes.between.snapshots",
        Kind.LONG,
        20_971_520,
        "How much the metadata log may grow before a snapshot takes its place.",
        unit="bytes",
        least=1,
    )
    metrics_host: str = _node(
        "metrics.host",
        Kind.STRING,
        "",
        "The address on which metrics and health are served; no host means that of the first listener.",
    )
    metrics_port: int = _node(
        "metrics.port",
        Kind.INT,
        9_644,
        "The port on which metrics and health are served; 0 takes a free one, -1 serves none.",
        least=-1,
        most=PORT_MAX,
    )
    node_id: NodeId = _node(  # noqa: RUF009  (a row of the table is a dataclass field)
        "node.id",
        Kind.INT,
        1,
        "The number of this node, unique in its cluster and fixed once its data folder exists.",
        least=0,
        read=lambda value: NodeId(int(str(value))),
    )
    num_partitions: int = _node(
        "num.partitions",
        Kind.INT,
        1,
        "Partitions of a topic that is created without saying how many.",
        least=1,
    )
    producer_id_expiration_ms: int = _node(
        "producer.id.expiration.ms",
        Kind.INT,
        86_400_000,
        "How long a partition remembers an idempotent producer that has stopped writing.",
        unit="ms",
        least=1,
        dynamic=True,
    )
    queued_max_request_bytes: int = _node(
        "queued.max.request.bytes",
        Kind.LONG,
        268_435_456,
        "How much memory all connections together may take for large requests until these are begun. An eighth of it "
        "is kept for small requests and all that is not Produce.",
        unit="bytes",
        least=1_048_576,
    )
    region: str = _node(
        "region",
        Kind.STRING,
        "",
        "The region this node stands in, by any name; noted in the data folder when it is first used.",
    )
    socket_request_max_bytes: int = _node(
        "socket.request.max.bytes",
        Kind.INT,
        104_857_600,
        "The largest request that is accepted; a connection that announces a larger one is closed.",
        unit="bytes",
        least=1_024,
        most=INT_MAX,
    )
    layers: Layers = field(default_factory=Layers)
    """Where the values above came from; the settings of topics build on it too."""


PROFILES: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "serve": MappingProxyType({}),
        "dev": MappingProxyType(
            {
                "durability": "os",
                "group.initial.rebalance.delay.ms": "0",
                "listeners": "PLAINTEXT://127.0.0.1:9092",
            }
        ),
    }
)
"""Defaults that differ by how the node was started: `serve` is the table itself, `dev` is for one's own machine."""


def rows(config: type[TopicConfig] | type[NodeSettings]) -> dict[str, Setting]:
    """Give the settings of one of the two classes by their names, in the order of the table."""
    settings = [each.metadata["setting"] for each in fields(config) if each.metadata]
    return {setting.name: setting for setting in settings}


TOPIC_SETTINGS: Final[Mapping[str, Setting]] = MappingProxyType(rows(TopicConfig))
NODE_ONLY_SETTINGS: Final[Mapping[str, Setting]] = MappingProxyType(rows(NodeSettings))

NODE_SETTINGS: Final[Mapping[str, tuple[Setting, NodeName]]] = MappingProxyType(
    {
        node_name.name: (setting, node_name)
        for setting in (*NODE_ONLY_SETTINGS.values(), *TOPIC_SETTINGS.values())
        for node_name in setting.node_names
    }
)
"""Every name that may stand in a node's configuration: its own settings, and those for all its topics."""

DEFAULT_TOPIC_CONFIG: Final = TopicConfig()
DEFAULT_NODE_ID: Final = NodeId(1)
