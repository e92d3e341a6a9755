"""Every setting of nodes, once: name, kind, default, unit, meaning. Replies, documentation and checks derive from here.

`NodeSettings` is the table, and what a node runs with; `resolution.py` fills it in. The settings of topics, which have
a module of their own, may all be set for a node too. Names are Kafka's wherever Kafka has the setting.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from riverlog.model.endpoints import PORT_MAX, Endpoint, read_endpoints
from riverlog.model.ids import NodeId
from riverlog.model.node_row import node_row
from riverlog.model.quorum_settings import QuorumSettings
from riverlog.model.row import rows_of
from riverlog.model.setting import INT_MAX, NodeSettingName, Setting, SettingType
from riverlog.model.topic_config import DEFAULT_TOPIC_CONFIG, TOPIC_SETTINGS, Durability, TopicConfig

__all__ = [
    "DEFAULT_NODE_ID",
    "DEFAULT_TOPIC_CONFIG",
    "NODE_ONLY_SETTINGS",
    "NODE_SETTINGS",
    "PROFILES",
    "TOPIC_SETTINGS",
    "Durability",
    "NodeSettings",
    "SettingLayers",
    "TopicConfig",
]


@dataclass(frozen=True, slots=True)
class SettingLayers:
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
class NodeSettings(QuorumSettings):
    """The settings of one node, resolved: what was set while it ran, else what it was started with, else the
    default of its profile."""

    advertised_listeners: tuple[Endpoint, ...] = node_row(
        "advertised.listeners",
        SettingType.LIST,
        "",
        "The addresses that clients are told to connect to; those of the listeners where nothing is given.",
        read=read_endpoints,
    )
    auto_create_topics_enable: bool = node_row(
        "auto.create.topics.enable",
        SettingType.BOOLEAN,
        True,
        "Whether a topic is created when a client first asks for it.",
    )
    broker_rack: str = node_row(
        "broker.rack",
        SettingType.STRING,
        "",
        "The rack of this node. With several nodes, replicas are spread over racks and readers prefer their own.",
    )
    checkpoints_host: str = node_row(
        "checkpoints.host",
        SettingType.STRING,
        "",
        "The address on which checkpoints of Spark are served; no host means that of the first listener.",
    )
    checkpoints_port: int = node_row(
        "checkpoints.port",
        SettingType.INT,
        -1,
        "The port on which checkpoints of Spark are served, as webhdfs; 0 takes a free one, -1 serves none.",
        least=-1,
        most=PORT_MAX,
    )
    cluster_id: str = node_row(
        "cluster.id",
        SettingType.STRING,
        "",
        "The cluster that all of `log.dirs` must belong to, as `riverlog cluster status` shows it. If it is "
        "set, the node does not start on an empty first folder, which may be a disk that is not mounted.",
    )
    connection_window_bytes: int = node_row(
        "connection.window.bytes",
        SettingType.INT,
        16_777_216,
        "How many bytes of requests one connection may have unanswered; at the limit it is not read from. A single "
        "request may be larger.",
        unit="bytes",
        least=65_536,
        most=INT_MAX,
    )
    connections_max_idle_ms: int = node_row(
        "connections.max.idle.ms",
        SettingType.LONG,
        600_000,
        "How long a connection may be silent before it is closed.",
        unit="ms",
        least=1,
    )
    default_replication_factor: int = node_row(
        "default.replication.factor",
        SettingType.INT,
        3,
        "Replicas of a topic that is created without saying how many; as many as there are nodes if that is less.",
        least=1,
        most=32_767,
    )
    delete_topic_enable: bool = node_row(
        "delete.topic.enable",
        SettingType.BOOLEAN,
        True,
        "Whether topics can be deleted.",
    )
    fetch_max_bytes: int = node_row(
        "fetch.max.bytes",
        SettingType.INT,
        57_671_680,
        "The most bytes of records in one answer to a fetch, whatever the client asks for.",
        unit="bytes",
        least=1_024,
    )
    group_consumer_assignment_interval_ms: int = node_row(
        "group.consumer.assignment.interval.ms",
        SettingType.INT,
        200,
        "The shortest time between two assignments of a consumer group. Members that join or leave in between "
        "are part of the next one.",
        unit="ms",
        least=0,
        most=15_000,
    )
    group_consumer_assignors: tuple[str, ...] = node_row(
        "group.consumer.assignors",
        SettingType.LIST,
        "uniform,range",
        "How partitions may be assigned in consumer groups; the first is for members that do not ask for one.",
        choices=("uniform", "range"),
    )
    group_consumer_heartbeat_interval_ms: int = node_row(
        "group.consumer.heartbeat.interval.ms",
        SettingType.INT,
        5_000,
        "How often members of a consumer group send heartbeats; more often while partitions move.",
        unit="ms",
        least=1,
    )
    group_consumer_max_size: int = node_row(
        "group.consumer.max.size",
        SettingType.INT,
        INT_MAX,
        "How many members a consumer group may have. Further ones are refused.",
        least=1,
    )
    group_consumer_migration_policy: str = node_row(
        "group.consumer.migration.policy",
        SettingType.STRING,
        "bidirectional",
        "Whether a group with members may change from the classic to the consumer protocol (upgrade) and back "
        "(downgrade).",
        choices=("bidirectional", "upgrade", "downgrade", "disabled"),
    )
    group_consumer_session_timeout_ms: int = node_row(
        "group.consumer.session.timeout.ms",
        SettingType.INT,
        45_000,
        "How long a member of a consumer group may be silent before its partitions go to others.",
        unit="ms",
        least=1,
    )
    group_initial_rebalance_delay_ms: int = node_row(
        "group.initial.rebalance.delay.ms",
        SettingType.INT,
        3_000,
        "How long a new consumer group waits for more members before partitions are handed out.",
        unit="ms",
        least=0,
    )
    group_max_session_timeout_ms: int = node_row(
        "group.max.session.timeout.ms",
        SettingType.INT,
        1_800_000,
        "The longest session that a member of a classic group may ask for.",
        unit="ms",
        least=1,
    )
    group_max_size: int = node_row(
        "group.max.size",
        SettingType.INT,
        INT_MAX,
        "How many members a classic group may have. Further ones are refused.",
        least=1,
    )
    group_min_session_timeout_ms: int = node_row(
        "group.min.session.timeout.ms",
        SettingType.INT,
        6_000,
        "The shortest session that a member of a classic group may ask for.",
        unit="ms",
        least=1,
    )
    http_allowed_hosts: tuple[str, ...] = node_row(
        "http.allowed.hosts",
        SettingType.LIST,
        "",
        "Further names under which metrics and checkpoints are asked for: a name, *.domain for all below it, or * for "
        "any. Addresses, localhost, the machine's own name and those of the listeners need not be listed.",
    )
    listener_security_protocol_map: tuple[str, ...] = node_row(
        "listener.security.protocol.map",
        SettingType.LIST,
        "PLAINTEXT:PLAINTEXT",
        "Which protocol each listener speaks, as NAME:PROTOCOL; PLAINTEXT is the only one today.",
    )
    listeners: tuple[Endpoint, ...] = node_row(
        "listeners",
        SettingType.LIST,
        "PLAINTEXT://:9092",
        "Where the node listens, as NAME://host:port; no host means every address, port 0 takes a free one.",
        read=read_endpoints,
    )
    log_cleaner_backoff_ms: int = node_row(
        "log.cleaner.backoff.ms",
        SettingType.LONG,
        15_000,
        "How long compaction pauses when no log needs it.",
        unit="ms",
        least=1,
        dynamic=True,
    )
    log_cleaner_dedupe_buffer_size: int = node_row(
        "log.cleaner.dedupe.buffer.size",
        SettingType.LONG,
        134_217_728,
        "How much memory a run of compaction may take for keys; what does not fit waits for the next run.",
        unit="bytes",
        least=1_048_576,
        dynamic=True,
    )
    log_cleaner_enable: bool = node_row(
        "log.cleaner.enable",
        SettingType.BOOLEAN,
        True,
        "Whether topics with cleanup.policy=compact are compacted.",
    )
    log_cleaner_io_max_bytes_per_second: float = node_row(
        "log.cleaner.io.max.bytes.per.second",
        SettingType.DOUBLE,
        1.7976931348623157e308,
        "How many bytes compaction may read and write in a second.",
        least=1,
        dynamic=True,
    )
    log_dirs: tuple[str, ...] = node_row(
        "log.dirs",
        SettingType.LIST,
        "./riverlog-data",
        "The folders that hold the data; the first has the metadata too, and the partitions of a topic are "
        "spread over all.",
        or_else=("log.dir",),
    )
    log_flush_offset_checkpoint_interval_ms: int = node_row(
        "log.flush.offset.checkpoint.interval.ms",
        SettingType.INT,
        60_000,
        "How often the node writes down which offsets are flushed (fsync). Recovery starts there.",
        unit="ms",
        least=1,
    )
    log_flush_start_offset_checkpoint_interval_ms: int = node_row(
        "log.flush.start.offset.checkpoint.interval.ms",
        SettingType.INT,
        60_000,
        "How often the node writes down the start offsets of its logs.",
        unit="ms",
        least=1,
    )
    log_retention_check_interval_ms: int = node_row(
        "log.retention.check.interval.ms",
        SettingType.LONG,
        300_000,
        "How often the node looks for segments that are old or large enough to be removed.",
        unit="ms",
        least=1,
    )
    log_scrub_interval_ms: int = node_row(
        "log.scrub.interval.ms",
        SettingType.LONG,
        604_800_000,
        "How long the scrubber pauses after it has read all closed segments to find damage; -1 switches it off.",
        unit="ms",
        least=-1,
    )
    log_scrub_io_max_bytes_per_second: float = node_row(
        "log.scrub.io.max.bytes.per.second",
        SettingType.DOUBLE,
        10_485_760.0,
        "How many bytes the scrubber may read in a second.",
        least=1,
        dynamic=True,
    )
    max_connections: int = node_row(
        "max.connections",
        SettingType.INT,
        10_000,
        "How many clients may be connected at the same time. Further ones are refused.",
        least=1,
        dynamic=True,
    )
    max_request_partition_size_limit: int = node_row(
        "max.request.partition.size.limit",
        SettingType.INT,
        2_000,
        "The most partitions in one answer that describes topics; the client asks again for the rest.",
        least=1,
    )
    metadata_log_max_record_bytes_between_snapshots: int = node_row(
        "metadata.log.max.record.bytes.between.snapshots",
        SettingType.LONG,
        20_971_520,
        "How much the metadata log may grow before a snapshot takes its place.",
        unit="bytes",
        least=1,
    )
    metrics_host: str = node_row(
        "metrics.host",
        SettingType.STRING,
        "",
        "The address on which metrics and health are served; no host means that of the first listener.",
    )
    metrics_port: int = node_row(
        "metrics.port",
        SettingType.INT,
        9_644,
        "The port on which metrics and health are served; 0 takes a free one, -1 serves none.",
        least=-1,
        most=PORT_MAX,
    )
    node_id: NodeId = node_row(  # noqa: RUF009  (a row of the table is a dataclass field)
        "node.id",
        SettingType.INT,
        1,
        "The number of this node, unique in its cluster and fixed once its data folder exists.",
        least=0,
        read=lambda value: NodeId(int(str(value))),
    )
    num_partitions: int = node_row(
        "num.partitions",
        SettingType.INT,
        1,
        "Partitions of a topic that is created without saying how many.",
        least=1,
    )
    num_recovery_threads_per_data_dir: int = node_row(
        "num.recovery.threads.per.data.dir",
        SettingType.INT,
        2,
        "How many threads or processes recover a log directory at the same time after a crash.",
        least=1,
        most=64,
    )
    offset_metadata_max_bytes: int = node_row(
        "offset.metadata.max.bytes",
        SettingType.INT,
        4_096,
        "The longest metadata text that a client may commit with an offset.",
        unit="bytes",
        least=0,
    )
    offsets_retention_check_interval_ms: int = node_row(
        "offsets.retention.check.interval.ms",
        SettingType.LONG,
        600_000,
        "How often the node looks for committed offsets that have expired.",
        unit="ms",
        least=1,
    )
    offsets_retention_minutes: int = node_row(
        "offsets.retention.minutes",
        SettingType.INT,
        10_080,
        "How long committed offsets are kept once their group has no members, or does not read the topic any more.",
        unit="minutes",
        least=1,
    )
    offsets_topic_num_partitions: int = node_row(
        "offsets.topic.num.partitions",
        SettingType.INT,
        50,
        "Partitions of the topic that keeps groups and their offsets, when it is created; each has a coordinator.",
        least=1,
    )
    offsets_topic_replication_factor: int = node_row(
        "offsets.topic.replication.factor",
        SettingType.INT,
        3,
        "How many copies are kept of groups and their offsets; not more than there are brokers when the topic is "
        "created.",
        least=1,
        most=32_767,
    )
    offsets_topic_segment_bytes: int = node_row(
        "offsets.topic.segment.bytes",
        SettingType.INT,
        104_857_600,
        "The size of a segment of the topic that keeps groups and their offsets, when it is created.",
        unit="bytes",
        least=1_048_576,
        most=INT_MAX,
    )
    producer_id_expiration_ms: int = node_row(
        "producer.id.expiration.ms",
        SettingType.INT,
        86_400_000,
        "How long a partition remembers an idempotent producer that has stopped writing.",
        unit="ms",
        least=1,
        dynamic=True,
    )
    queued_max_request_bytes: int = node_row(
        "queued.max.request.bytes",
        SettingType.LONG,
        268_435_456,
        "How much memory all connections together may take for large requests until these are begun. An eighth of it "
        "is kept for small requests and all that is not Produce.",
        unit="bytes",
        least=1_048_576,
    )
    region: str = node_row(
        "region",
        SettingType.STRING,
        "",
        "The region this node stands in, by any name; noted in the data folder when it is first used.",
    )
    socket_request_max_bytes: int = node_row(
        "socket.request.max.bytes",
        SettingType.INT,
        104_857_600,
        "The largest request that is accepted; a connection that announces a larger one is closed.",
        unit="bytes",
        least=1_024,
        most=INT_MAX,
    )
    transaction_max_timeout_ms: int = node_row(
        "transaction.max.timeout.ms",
        SettingType.INT,
        900_000,
        "The longest time after which a producer may want its open transaction to be aborted.",
        unit="ms",
        least=1,
    )
    transaction_remove_expired_transaction_cleanup_interval_ms: int = node_row(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        SettingType.INT,
        3_600_000,
        "How often coordinators look for transactional ids that nobody uses any more.",
        unit="ms",
        least=1,
    )
    transaction_state_log_num_partitions: int = node_row(
        "transaction.state.log.num.partitions",
        SettingType.INT,
        50,
        "Partitions of the topic that keeps transactional ids, when it is created; each has a coordinator.",
        least=1,
    )
    transaction_state_log_replication_factor: int = node_row(
        "transaction.state.log.replication.factor",
        SettingType.INT,
        3,
        "How many copies are kept of transactional ids; not more than there are brokers when the topic is created.",
        least=1,
        most=32_767,
    )
    transaction_state_log_segment_bytes: int = node_row(
        "transaction.state.log.segment.bytes",
        SettingType.INT,
        104_857_600,
        "The size of a segment of the topic that keeps transactional ids, when it is created.",
        unit="bytes",
        least=1_048_576,
        most=INT_MAX,
    )
    transactional_id_expiration_ms: int = node_row(
        "transactional.id.expiration.ms",
        SettingType.INT,
        604_800_000,
        "How long a transactional id is remembered after its last transaction.",
        unit="ms",
        least=1,
    )
    layers: SettingLayers = field(default_factory=SettingLayers)
    """Where the values above came from; the settings of topics build on it too."""


PROFILES: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "serve": MappingProxyType({}),
        "dev": MappingProxyType(
            {
                "checkpoints.port": "9870",
                "durability": "os",
                "group.initial.rebalance.delay.ms": "0",
                "listeners": "PLAINTEXT://127.0.0.1:9092",
            }
        ),
    }
)
"""Defaults that differ by how the node was started: `serve` is the table itself, `dev` is for one's own machine."""


NODE_ONLY_SETTINGS: Final[Mapping[str, Setting]] = MappingProxyType(rows_of(NodeSettings))

NODE_SETTINGS: Final[Mapping[str, tuple[Setting, NodeSettingName]]] = MappingProxyType(
    {
        node_name.name: (setting, node_name)
        for setting in (*NODE_ONLY_SETTINGS.values(), *TOPIC_SETTINGS.values())
        for node_name in setting.node_names
    }
)
"""Every name that may stand in a node's configuration: its own settings, and those for all its topics."""

DEFAULT_NODE_ID: Final = NodeId(1)
