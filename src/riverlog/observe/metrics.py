"""Every metric, named once, and how a scrape reads it.

`Metric` is the table: documentation, exposition and tests derive from it. `scrape` takes the numbers from a node
in short turns; `exposition.py` writes them down for Prometheus. Where kafka_exporter has a name for the same
thing, that name is kept, so that dashboards made for it show riverlog too. Metrics of a partition come from its
leader only: sums over a cluster count nothing twice.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum, StrEnum, unique
from typing import Final, NamedTuple, TypeVar

from riverlog.observe.limits import SCRAPED_PER_TURN
from riverlog.observe.process import read_process
from riverlog.observe.quorum_stats import QuorumSample
from riverlog.observe.samples import GroupSample, MetricsSource, PartitionSample
from riverlog.observe.stats import Histogram, NodeStats

T = TypeVar("T")


@unique
class MetricType(StrEnum):
    """How a metric behaves over time."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


_PARTITION = ("topic", "partition")
_PIPELINE = ("pipeline",)
_GROUP_TOPIC = ("consumergroup", "topic")
_GROUP_PARTITION = ("consumergroup", "topic", "partition")


_Row = tuple[str, MetricType, tuple[str, ...], str]


def _counter(name: str, labels: tuple[str, ...], meaning: str) -> _Row:
    return name, MetricType.COUNTER, labels, meaning


def _gauge(name: str, labels: tuple[str, ...], meaning: str) -> _Row:
    return name, MetricType.GAUGE, labels, meaning


def _histogram(name: str, labels: tuple[str, ...], meaning: str) -> _Row:
    return name, MetricType.HISTOGRAM, labels, meaning


class Metric(Enum):
    """One row per metric: name, kind, labels, meaning."""

    INFO = _gauge("riverlog_info", ("version", "node_id", "cluster_id"), "Always 1; the labels say who this is.")
    STARTUP_SECONDS = _gauge(
        "riverlog_startup_seconds", (), "Seconds from the start of the process until it could be used."
    )
    BROKERS = _gauge("kafka_brokers", (), "Brokers in the cluster.")
    BROKER_INFO = _gauge("kafka_broker_info", ("id", "address"), "Always 1; one series per broker.")
    TOPIC_PARTITIONS = _gauge("kafka_topic_partitions", ("topic",), "Partitions of the topic.")
    CURRENT_OFFSET = _gauge(
        "kafka_topic_partition_current_offset",
        _PARTITION,
        "High watermark: the offset that the next record shown to consumers will have.",
    )
    OLDEST_OFFSET = _gauge(
        "kafka_topic_partition_oldest_offset", _PARTITION, "Log start offset: the oldest record that can be read."
    )
    LEADER = _gauge("kafka_topic_partition_leader", _PARTITION, "Node id of the leader.")
    LEADER_IS_PREFERRED = _gauge(
        "kafka_topic_partition_leader_is_preferred", _PARTITION, "1 if the leader is the first of the replicas."
    )
    REPLICAS = _gauge("kafka_topic_partition_replicas", _PARTITION, "Replicas assigned.")
    IN_SYNC_REPLICAS = _gauge("kafka_topic_partition_in_sync_replica", _PARTITION, "Replicas in sync.")
    UNDER_REPLICATED = _gauge(
        "kafka_topic_partition_under_replicated_partition", _PARTITION, "1 if fewer replicas are in sync than assigned."
    )
    LOG_END_OFFSET = _gauge(
        "riverlog_partition_log_end_offset",
        _PARTITION,
        "The offset that the next appended record will get; above the high watermark while not yet committed.",
    )
    SIZE = _gauge("riverlog_partition_size_bytes", _PARTITION, "Bytes of all segments.")
    SEGMENTS = _gauge("riverlog_partition_segments", _PARTITION, "Segments, the active one included.")
    DAMAGED_SEGMENTS = _gauge(
        "riverlog_partition_damaged_segments",
        _PARTITION,
        "Segments with damage that is known; the offsets that cannot be read are refused.",
    )
    MESSAGES_IN = _counter("riverlog_partition_messages_in_total", _PARTITION, "Records appended by producers.")
    BATCHES_IN = _counter("riverlog_partition_batches_in_total", _PARTITION, "Batches appended by producers.")
    BYTES_IN = _counter("riverlog_partition_bytes_in_total", _PARTITION, "Bytes appended by producers.")
    MESSAGES_OUT = _counter("riverlog_partition_messages_out_total", _PARTITION, "Offsets given to consumers.")
    BYTES_OUT = _counter("riverlog_partition_bytes_out_total", _PARTITION, "Bytes given to consumers.")
    FETCHES = _counter("riverlog_partition_fetches_total", _PARTITION, "Times consumers asked for records.")
    GROUP_MEMBERS = _gauge("kafka_consumergroup_members", ("consumergroup",), "Members of the group.")
    GROUP_OFFSET = _gauge(
        "kafka_consumergroup_current_offset", _GROUP_PARTITION, "Committed offset: what the group reads next."
    )
    GROUP_OFFSET_SUM = _gauge(
        "kafka_consumergroup_current_offset_sum",
        _GROUP_TOPIC,
        "Committed offsets of all partitions of the topic together.",
    )
    GROUP_LAG = _gauge(
        "kafka_consumergroup_lag", _GROUP_PARTITION, "How far the committed offset is behind the high watermark."
    )
    GROUP_LAG_SUM = _gauge(
        "kafka_consumergroup_lag_sum",
        _GROUP_TOPIC,
        "How far the group is behind in all partitions of the topic together.",
    )
    GROUPS = _gauge("riverlog_groups", ("state",), "Groups that this node coordinates, by their state.")
    TRANSACTIONS = _gauge(
        "riverlog_transactional_ids",
        ("state",),
        "Transactional ids that this node coordinates, by the state of their transaction; Ongoing is open.",
    )
    OLDEST_TRANSACTION = _gauge(
        "riverlog_transaction_oldest_open_seconds",
        (),
        "How long the oldest open transaction of this node's coordinators has been open; 0 where none is.",
    )
    TRANSACTIONS_ENDED = _counter(
        "riverlog_transactions_ended_total",
        ("outcome",),
        "Transactions decided: committed, aborted, timed_out, or fenced (a new producer took over meanwhile).",
    )
    MARKERS_WAITING = _gauge(
        "riverlog_transaction_markers_waiting",
        (),
        "Markers of decided transactions that have not been written to all their partitions yet.",
    )
    MARKERS_RETRIED = _counter(
        "riverlog_transaction_markers_retried_total", (), "Markers that a partition did not take, to be sent again."
    )
    STABLE_LAG = _gauge(
        "riverlog_partition_stable_lag",
        _PARTITION,
        "How far the last stable offset is behind the high watermark; only for partitions where it is.",
    )
    COORDINATORS_LOADING = _gauge(
        "riverlog_coordinators_loading",
        (),
        "Coordinators that are still reading their log, and answer nobody meanwhile.",
    )
    QUORUM_LEADER = _gauge("riverlog_quorum_leader_id", (), "Node that leads the metadata log; -1 while none is known.")
    QUORUM_EPOCH = _gauge("riverlog_quorum_epoch", (), "The newest epoch of leaders that this node knows.")
    QUORUM_VOTED = _gauge(
        "riverlog_quorum_voted_id", (), "Node for which this one has voted in that epoch; -1 for nobody."
    )
    QUORUM_STATE = _gauge(
        "riverlog_quorum_state",
        ("state",),
        "Always 1; the label is the state: leader, follower, observer, unattached, prospective, candidate, resigned.",
    )
    QUORUM_VOTERS = _gauge("riverlog_quorum_voters", (), "Nodes that vote on the metadata.")
    QUORUM_HIGH_WATERMARK = _gauge(
        "riverlog_quorum_high_watermark", (), "Records of the metadata below are committed; -1 while that is unknown."
    )
    QUORUM_LOG_END = _gauge("riverlog_quorum_log_end_offset", (), "Where this node's copy of the metadata log ends.")
    QUORUM_COMMITS = _histogram(
        "riverlog_quorum_commit_seconds",
        (),
        "Time from the writing of records by this node, as the leader, until they are committed.",
    )
    QUORUM_ELECTIONS = _histogram(
        "riverlog_quorum_election_seconds",
        (),
        "Time from the beginning of an election on this node until it knows who leads.",
    )
    METADATA_APPLIED = _gauge(
        "riverlog_metadata_applied_offset", (), "The last committed record of the metadata that this node goes by."
    )
    METADATA_LAG = _gauge(
        "riverlog_metadata_applied_lag", (), "Committed records of the metadata that this node does not go by yet."
    )
    METADATA_SNAPSHOT_AGE = _gauge(
        "riverlog_metadata_snapshot_age_seconds",
        (),
        "Time since this node made its last snapshot of the metadata, or since its start.",
    )
    METADATA_SNAPSHOT_SIZE = _gauge(
        "riverlog_metadata_snapshot_bytes", (), "Bytes of the newest snapshot of the metadata; 0 where there is none."
    )
    CONTROLLER_ACTIVE = _gauge(
        "riverlog_controller_active",
        (),
        "1 on the node that decides about the metadata; all that is named riverlog_controller below comes from there.",
    )
    CONTROLLER_ACTIVE_BROKERS = _gauge(
        "riverlog_controller_active_brokers", (), "Brokers that are registered and may lead."
    )
    CONTROLLER_FENCED_BROKERS = _gauge(
        "riverlog_controller_fenced_brokers", (), "Brokers that are registered and not heard of."
    )
    CONTROLLER_TOPICS = _gauge("riverlog_controller_topics", (), "Topics of the cluster.")
    CONTROLLER_PARTITIONS = _gauge("riverlog_controller_partitions", (), "Partitions of the cluster.")
    CONTROLLER_OFFLINE = _gauge(
        "riverlog_controller_offline_partitions",
        (),
        "Partitions that nobody leads; counted in clusters of several nodes, as the next one.",
    )
    CONTROLLER_UNPREFERRED = _gauge(
        "riverlog_controller_preferred_imbalance",
        (),
        "Partitions that are led by another broker than the first of their replicas.",
    )
    CONTROLLER_QUEUE = _histogram(
        "riverlog_controller_queue_seconds", (), "Time that decided records wait until they are written to the log."
    )
    LOOP_LAG = _histogram(
        "riverlog_event_loop_lag_seconds",
        (),
        "How late timers of the node are, measured four times a second: the time for which others held the loop.",
    )
    PIPELINE_RUNNING = _gauge(
        "riverlog_pipeline_running",
        _PIPELINE,
        "1 while the driver of the query reports that it runs; only for queries that report, as all that follows.",
    )
    PIPELINE_BATCH = _gauge("riverlog_pipeline_batch", _PIPELINE, "Number of the last batch.")
    PIPELINE_BATCH_TIME = _gauge(
        "riverlog_pipeline_batch_timestamp_seconds", _PIPELINE, "When the last batch began, in seconds since 1970."
    )
    PIPELINE_BATCH_SECONDS = _gauge("riverlog_pipeline_batch_seconds", _PIPELINE, "How long the last batch took.")
    PIPELINE_RATE = _gauge("riverlog_pipeline_rows_per_second", _PIPELINE, "Rows per second of the last batch.")
    PIPELINE_WATERMARK = _gauge(
        "riverlog_pipeline_watermark_timestamp_seconds", _PIPELINE, "The watermark, in seconds since 1970."
    )
    PIPELINE_LATE_ROWS = _counter(
        "riverlog_pipeline_late_rows_total", _PIPELINE, "Rows dropped because they came behind the watermark."
    )
    PIPELINE_STATE_ROWS = _gauge("riverlog_pipeline_state_rows", _PIPELINE, "Rows in the query's state.")
    LOG_DIRECTORY_ONLINE = _gauge(
        "riverlog_log_directory_online",
        ("directory",),
        "1 while the directory can be written to; 0 after a failed write or flush, until the node is restarted.",
    )
    LOG_DIRECTORY_SIZE = _gauge(
        "riverlog_log_directory_size_bytes", ("directory",), "Bytes of all partitions in the directory."
    )
    LOG_DIRECTORY_FREE = _gauge(
        "riverlog_log_directory_free_bytes",
        ("directory",),
        "Bytes that can still be written to the directory's file system.",
    )
    FLUSHES = _histogram("riverlog_flush_seconds", (), "Time of each flush (fsync) of log files.")
    CONTAINED = _counter(
        "riverlog_exceptions_contained_total",
        (),
        "Exceptions that nobody expected and that the node survived; each is an error line in the log, and a bug.",
    )
    SCRUBBED_BYTES = _counter(
        "riverlog_scrubbed_bytes_total", (), "Bytes of closed segments read again to find damage."
    )
    SCRUB_COMPLETED = _gauge(
        "riverlog_scrub_completed_timestamp_seconds",
        (),
        "When all closed segments had been read again, in seconds since 1970; 0 until that has happened once.",
    )
    REQUESTS = _counter("riverlog_requests_total", ("api",), "Requests answered.")
    REQUEST_SECONDS = _histogram(
        "riverlog_request_seconds",
        ("api",),
        "Time of whole requests, from their arrival to the last byte of the answer.",
    )
    REQUEST_STAGE_SECONDS = _histogram(
        "riverlog_request_stage_seconds",
        ("api", "stage"),
        "Time per stage: queue (until the handler), handle, wait (flush, replicas, new records), send.",
    )
    ERRORS = _counter(
        "riverlog_request_errors_total", ("api", "error"), "Error codes given in answers, by Kafka's name for them."
    )
    CONNECTIONS_OPEN = _gauge("riverlog_connections_open", (), "Connections now open.")
    CONNECTIONS_ACCEPTED = _counter("riverlog_connections_accepted_total", (), "Connections let in.")
    CONNECTIONS_REFUSED = _counter(
        "riverlog_connections_refused_total",
        (),
        "Connections turned away because max.connections, or as many as there are descriptors for, were open.",
    )
    CONNECTIONS_HELD_UP = _counter(
        "riverlog_accepts_held_up_total",
        (),
        "How often no connection could be accepted for a moment, because no descriptors or memory were left.",
    )
    CONNECTIONS_HELD_BACK = _gauge(
        "riverlog_connections_held_back",
        (),
        "Connections not read from at the moment: too much unanswered, or no memory free for what they send.",
    )
    CONNECTIONS_CLOSED = _counter(
        "riverlog_connections_closed_total",
        ("reason",),
        "Connections ended: by the peer, idle, broken, malformed bytes, a request without an answer, too slow, or the "
        "node stopping.",
    )
    REQUEST_MEMORY = _gauge(
        "riverlog_request_memory_bytes",
        (),
        "Memory lent to connections for large requests; queued.max.request.bytes bounds it.",
    )
    PROCESS_CPU = _counter("process_cpu_seconds_total", (), "CPU time of the process, user and system.")
    PROCESS_RESIDENT = _gauge("process_resident_memory_bytes", (), "Memory of the process that is resident.")
    PROCESS_OPEN_FILES = _gauge("process_open_fds", (), "Files and sockets that the process holds open.")
    PROCESS_OPEN_FILES_MAX = _gauge("process_max_fds", (), "Files and sockets that it may hold open.")

    def __init__(self, metric: str, kind: MetricType, labels: tuple[str, ...], meaning: str) -> None:
        self.metric = metric
        self.kind = kind
        self.labels = labels
        self.meaning = meaning


class Sample(NamedTuple):
    """One series: its labels' values in the table's order, and its number or its histogram."""

    metric: Metric
    labels: tuple[str, ...]
    value: float | Histogram


class Scrape(NamedTuple):
    """All numbers of a node at one moment; those of partitions and groups are still together, as there may be
    thousands."""

    readings: list[Sample]
    partitions: list[PartitionSample]
    groups: list[GroupSample]


PARTITION_VALUES: Final[dict[Metric, Callable[[PartitionSample], int]]] = {
    Metric.CURRENT_OFFSET: lambda partition: partition.high_watermark,
    Metric.OLDEST_OFFSET: lambda partition: partition.log_start_offset,
    Metric.LEADER: lambda partition: partition.leader,
    Metric.LEADER_IS_PREFERRED: lambda partition: partition.leader == partition.replicas[0],
    Metric.REPLICAS: lambda partition: len(partition.replicas),
    Metric.IN_SYNC_REPLICAS: lambda partition: len(partition.in_sync_replicas),
    Metric.UNDER_REPLICATED: lambda partition: len(partition.in_sync_replicas) < len(partition.replicas),
    Metric.LOG_END_OFFSET: lambda partition: partition.log_end_offset,
    Metric.SIZE: lambda partition: partition.size_bytes,
    Metric.SEGMENTS: lambda partition: partition.segments,
    Metric.DAMAGED_SEGMENTS: lambda partition: partition.damaged_segments,
    Metric.MESSAGES_IN: lambda partition: partition.stats.messages_in,
    Metric.BATCHES_IN: lambda partition: partition.stats.batches_in,
    Metric.BYTES_IN: lambda partition: partition.stats.bytes_in,
    Metric.MESSAGES_OUT: lambda partition: partition.stats.messages_out,
    Metric.BYTES_OUT: lambda partition: partition.stats.bytes_out,
    Metric.FETCHES: lambda partition: partition.stats.fetches,
}
"""Where the number of each metric of a partition comes from."""


async def scrape(source: MetricsSource, *, version: str) -> Scrape:
    """Read all numbers of a node on its loop; others have their turn between some hundreds of them."""
    stats = source.stats
    partitions = await _in_turns(source.partitions())
    groups = await _in_turns(source.groups())
    topics = await _in_turns(source.topics())
    readings = [
        *_read_node(source, version, topics),
        *_read_quorum(source.quorum(), topics),
        Sample(Metric.LOOP_LAG, (), stats.loop_lag.copy()),
        *_read_transactions(source, partitions),
        *_read_pipelines(source),
        *_read_requests(stats),
        *_read_connections(stats),
        *_read_process(),
    ]
    return Scrape(readings, partitions, groups)


async def _in_turns(items: Iterable[T]) -> list[T]:
    taken: list[T] = []
    for number, item in enumerate(items, 1):
        taken.append(item)
        if number % SCRAPED_PER_TURN == 0:
            await asyncio.sleep(0)
    return taken


def read_groups(groups: Sequence[GroupSample]) -> Iterator[Sample]:
    """Read all series of groups."""
    for state, count in sorted(Counter(group.state for group in groups).items()):
        yield Sample(Metric.GROUPS, (state,), count)
    for group in groups:
        offsets: Counter[str] = Counter()
        lags: Counter[str] = Counter()
        yield Sample(Metric.GROUP_MEMBERS, (group.group_id,), group.members)
        for topic, partition, offset, lag in group.committed:
            labels = (group.group_id, topic, str(partition))
            offsets[topic] += offset
            yield Sample(Metric.GROUP_OFFSET, labels, offset)
            if lag is not None:
                lags[topic] += lag
                yield Sample(Metric.GROUP_LAG, labels, lag)
        for metric, sums in ((Metric.GROUP_OFFSET_SUM, offsets), (Metric.GROUP_LAG_SUM, lags)):
            for topic, total in sums.items():
                yield Sample(metric, (group.group_id, topic), total)


def _read_node(source: MetricsSource, version: str, topics: Iterable[tuple[str, int]]) -> Iterator[Sample]:
    yield Sample(Metric.INFO, (version, str(source.node_id), source.cluster_id), 1)
    yield Sample(Metric.STARTUP_SECONDS, (), source.stats.startup_seconds)
    brokers = list(source.brokers())
    yield Sample(Metric.BROKERS, (), len(brokers))
    for broker in brokers:
        yield Sample(Metric.BROKER_INFO, (str(broker.node_id), broker.address), 1)
    for topic, partitions in topics:
        yield Sample(Metric.TOPIC_PARTITIONS, (topic,), partitions)
    for directory, online, size_bytes, free_bytes in source.log_directories():
        yield Sample(Metric.LOG_DIRECTORY_ONLINE, (directory,), online)
        yield Sample(Metric.LOG_DIRECTORY_SIZE, (directory,), size_bytes)
        yield Sample(Metric.LOG_DIRECTORY_FREE, (directory,), free_bytes)
    yield Sample(Metric.FLUSHES, (), source.stats.flushes.copy())
    yield Sample(Metric.CONTAINED, (), source.stats.contained)
    yield Sample(Metric.SCRUBBED_BYTES, (), source.stats.scrub.bytes)
    yield Sample(Metric.SCRUB_COMPLETED, (), source.stats.scrub.completed_ms / 1000)
    yield Sample(Metric.COORDINATORS_LOADING, (), source.coordinators_loading())


def _read_quorum(quorum: QuorumSample, topics: Sequence[tuple[str, int]]) -> Iterator[Sample]:
    applied = quorum.applied_offset
    yield Sample(Metric.QUORUM_LEADER, (), quorum.leader_id)
    yield Sample(Metric.QUORUM_EPOCH, (), quorum.epoch)
    yield Sample(Metric.QUORUM_VOTED, (), quorum.voted_id)
    yield Sample(Metric.QUORUM_STATE, (quorum.state,), 1)
    yield Sample(Metric.QUORUM_VOTERS, (), quorum.voters)
    yield Sample(Metric.QUORUM_HIGH_WATERMARK, (), quorum.high_watermark)
    yield Sample(Metric.QUORUM_LOG_END, (), quorum.log_end_offset)
    yield Sample(Metric.QUORUM_COMMITS, (), quorum.stats.commits.copy())
    yield Sample(Metric.QUORUM_ELECTIONS, (), quorum.stats.elections.copy())
    yield Sample(Metric.METADATA_APPLIED, (), applied - 1)
    yield Sample(Metric.METADATA_LAG, (), max(0, quorum.high_watermark - applied))
    yield Sample(Metric.METADATA_SNAPSHOT_AGE, (), quorum.snapshot_age_seconds)
    yield Sample(Metric.METADATA_SNAPSHOT_SIZE, (), quorum.snapshot_bytes)
    controller = quorum.controller
    yield Sample(Metric.CONTROLLER_ACTIVE, (), controller is not None)
    if controller is None:
        return
    yield Sample(Metric.CONTROLLER_ACTIVE_BROKERS, (), controller.active_brokers)
    yield Sample(Metric.CONTROLLER_FENCED_BROKERS, (), controller.fenced_brokers)
    yield Sample(Metric.CONTROLLER_TOPICS, (), len(topics))
    yield Sample(Metric.CONTROLLER_PARTITIONS, (), sum(partitions for _topic, partitions in topics))
    yield Sample(Metric.CONTROLLER_QUEUE, (), quorum.stats.queue.copy())
    if controller.offline_partitions is not None and controller.unpreferred_partitions is not None:
        yield Sample(Metric.CONTROLLER_OFFLINE, (), controller.offline_partitions)
        yield Sample(Metric.CONTROLLER_UNPREFERRED, (), controller.unpreferred_partitions)


def _read_transactions(source: MetricsSource, partitions: Iterable[PartitionSample]) -> Iterator[Sample]:
    held, stats = source.transactions(), source.stats.transactions
    for state, count in sorted(held.ids_by_state.items()):
        yield Sample(Metric.TRANSACTIONS, (state,), count)
    yield Sample(Metric.OLDEST_TRANSACTION, (), held.oldest_open_seconds)
    for outcome, count in stats.ended.items():
        yield Sample(Metric.TRANSACTIONS_ENDED, (outcome,), count)
    yield Sample(Metric.MARKERS_WAITING, (), stats.markers_waiting)
    yield Sample(Metric.MARKERS_RETRIED, (), stats.markers_retried)
    for each in partitions:
        if each.last_stable_offset < each.high_watermark:
            labels = (each.topic, str(each.partition))
            yield Sample(Metric.STABLE_LAG, labels, each.high_watermark - each.last_stable_offset)


def _read_pipelines(source: MetricsSource) -> Iterator[Sample]:
    for each in source.pipelines():
        values = {
            Metric.PIPELINE_RUNNING: each.running,
            Metric.PIPELINE_BATCH: each.batch,
            Metric.PIPELINE_BATCH_TIME: _seconds(each.batch_at_ms),
            Metric.PIPELINE_BATCH_SECONDS: _seconds(each.batch_ms),
            Metric.PIPELINE_RATE: each.rows_per_second,
            Metric.PIPELINE_WATERMARK: _seconds(each.watermark_ms),
            Metric.PIPELINE_LATE_ROWS: each.late_rows,
            Metric.PIPELINE_STATE_ROWS: each.state_rows,
        }
        yield from (Sample(metric, (each.pipeline,), value) for metric, value in values.items() if value is not None)


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000


def _read_requests(stats: NodeStats) -> Iterator[Sample]:
    for api, requests in stats.requests.items():
        yield Sample(Metric.REQUESTS, (api,), requests.count)
        yield Sample(Metric.REQUEST_SECONDS, (api,), requests.total())
        for stage, histogram in requests.stages().items():
            yield Sample(Metric.REQUEST_STAGE_SECONDS, (api, stage), histogram)
        for code, count in requests.errors.items():
            yield Sample(Metric.ERRORS, (api, code.name), count)


def _read_connections(stats: NodeStats) -> Iterator[Sample]:
    connections = stats.connections
    yield Sample(Metric.CONNECTIONS_OPEN, (), connections.open)
    yield Sample(Metric.CONNECTIONS_ACCEPTED, (), connections.accepted)
    yield Sample(Metric.CONNECTIONS_REFUSED, (), connections.refused)
    yield Sample(Metric.CONNECTIONS_HELD_UP, (), connections.accepts_held_up)
    yield Sample(Metric.CONNECTIONS_HELD_BACK, (), connections.held_back)
    yield Sample(Metric.REQUEST_MEMORY, (), connections.request_bytes)
    for reason, count in connections.closed.items():
        yield Sample(Metric.CONNECTIONS_CLOSED, (reason,), count)


def _read_process() -> Iterator[Sample]:
    process = read_process()
    yield Sample(Metric.PROCESS_CPU, (), process.cpu_seconds)
    yield Sample(Metric.PROCESS_OPEN_FILES_MAX, (), process.open_files_max)
    if process.resident_bytes is not None:
        yield Sample(Metric.PROCESS_RESIDENT, (), process.resident_bytes)
    if process.open_files is not None:
        yield Sample(Metric.PROCESS_OPEN_FILES, (), process.open_files)
