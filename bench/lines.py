"""The table of lines: everything that is measured, and the ratio to Apache Kafka that each number is to reach.

A new measurement is a function in `probes.py` and an entry here; the command line, the report and the check of
docs/performance.md follow from this table.
"""

from collections.abc import Iterable
from functools import partial
from typing import Final

from bench import (
    comparisons,
    groups,
    partitions,
    pipelines,
    probes,
    scans,
    shared,
    spark_batches,
    spark_streams,
    spark_tables,
    transactions,
    writers,
)
from bench.trial import Better, Line, Row

HIGHER, LOWER, NEITHER = Better

IDEMPOTENT: Final = {"enable.idempotence": True}
BATCHES_16K: Final = {"batch.size": 16_384}
LZ4: Final = {"compression.type": "lz4"}


def throughput(reach: float | None, cpu_reach: float | None = None) -> tuple[Row, ...]:
    """Rows of a line that moves bytes."""
    return Row("rate", "MB/s", HIGHER, reach), Row("CPU", "s/GB", LOWER, cpu_reach)


def requests(reach: float) -> tuple[Row, ...]:
    """Rows of a line that counts requests."""
    return (
        Row("rate", "/s", HIGHER, reach),
        Row("p50", "ms", LOWER),
        Row("p99", "ms", LOWER),
        Row("CPU", "us each", LOWER),
    )


def latency(p50_reach: float, p99_reach: float) -> tuple[Row, ...]:
    """Rows of a line that times records at a steady rate."""
    return Row("p50", "ms", LOWER, p50_reach), Row("p99", "ms", LOWER, p99_reach), Row("CPU", "% of a core", LOWER)


def one_after_the_other(what: str = "") -> tuple[Row, ...]:
    """Rows of a line that commits small transactions."""
    return (
        Row("rate", "/s", HIGHER, 4.0),
        Row(f"{what}p50", "ms", LOWER, 0.5),
        Row(f"{what}p99", "ms", LOWER, 0.2),
        Row("CPU", "us each", LOWER),
    )


def recovery(reach: float) -> tuple[Row, ...]:
    """Rows of a line that stops a node and starts it again."""
    return (
        Row("fill", "MB/s", HIGHER),
        Row("after kill", "s", LOWER, reach),
        Row("CPU", "s", LOWER),
        Row("stop", "s", LOWER),
        Row("after stop", "s", LOWER, reach),
    )


def beside_plain() -> tuple[Row, ...]:
    """Rows of a line that moves bytes in transactions, and then in none."""
    return (
        Row("rate", "MB/s", HIGHER, 1.3),
        Row("plain", "MB/s", HIGHER),
        Row("share", "of plain", HIGHER, own_reach=0.92),
        Row("CPU", "s/GB", LOWER),
    )


def beside_connector(gain: float, *, tuned_gain: float | None = None) -> tuple[Row, ...]:
    """Rows of a line that moves rows by riverlog's format, and then by Spark's own connector."""
    rates = Row("tuned", "M rows/s", HIGHER), Row("gain on tuned", "x", HIGHER, own_reach=tuned_gain)
    return (
        Row("riverlog", "M rows/s", HIGHER),
        Row("connector", "M rows/s", HIGHER),
        Row("gain", "x", HIGHER, own_reach=gain),
        *(rates if tuned_gain is not None else ()),
        Row("CPU riverlog", "s/M rows", LOWER),
        Row("CPU connector", "s/M rows", LOWER),
        *((Row("CPU tuned", "s/M rows", LOWER),) if tuned_gain is not None else ()),
    )


LINES: Final = (
    Line(
        "startup",
        "process start to the first Metadata answer: on an empty folder, and again on the same folder",
        probes.startup,
        (Row("first", "s", LOWER, 1 / 8), Row("again", "s", LOWER, 1 / 8), Row("CPU", "s", LOWER)),
        on_shared_node=False,
    ),
    Line(
        "memory",
        "resident memory of a new node: 2 s after its start, and after 1 KB produce and 64x5 small requests",
        probes.memory,
        (Row("at rest", "MB", LOWER, 1 / 5), Row("after load", "MB", LOWER, 1 / 8)),
        on_shared_node=False,
    ),
    Line(
        "thousand-partitions",
        "a new node: create 1,000 partitions, a first record into each, restart after kill -9 until each gave it back",
        partitions.thousand,
        (
            Row("create", "s", LOWER, 1.0),
            Row("first records", "s", LOWER, 1 / 4),
            Row("memory", "MB", LOWER, 1 / 5),
            Row("restart", "s", LOWER, 1 / 6),
        ),
        on_shared_node=False,
    ),
    Line(
        "recovery-100",
        "3 GB in 100 partitions: restart after kill -9, stop, and restart after that, until each gave a record back",
        partial(partitions.recovery, partitions=100, total_bytes=3_000_000_000),
        recovery(1 / 5),
        on_shared_node=False,
    ),
    Line(
        "recovery-1000",
        "the same with 4 GB in 1,000 partitions",
        partial(partitions.recovery, partitions=1_000, total_bytes=4_000_000_000),
        recovery(1 / 5),
        on_shared_node=False,
        runs_max=1,
    ),
    Line(
        "idle-connections",
        "memory of a new node that 100, and then 2,000 connections have greeted and left alone",
        comparisons.idle_connections,
        (
            Row("100, each", "KB", NEITHER),
            Row("2,000, each", "KB", NEITHER),
            Row("2,000, node", "MB", LOWER, 1 / 5),
        ),
        on_shared_node=False,
    ),
    Line(
        "sendfile",
        "fetch, from a node as it is and from one that copies through its memory: CPU of the one by that of the other",
        comparisons.sendfile,
        (
            Row("CPU sendfile", "s/GB", LOWER),
            Row("CPU copying", "s/GB", LOWER),
            Row("CPU ratio", "x", LOWER, own_reach=0.5),
            Row("rate sendfile", "MB/s", HIGHER),
            Row("rate copying", "MB/s", HIGHER),
        ),
        on_shared_node=False,
        ours_only=True,
    ),
    Line(
        "produce-1k",
        "1 KB records, confluent-kafka with its defaults (acks=all)",
        partial(probes.produce, value_bytes=1_000),
        throughput(1.0, 0.7),
    ),
    Line(
        "produce-1k-idempotent",
        "the same with enable.idempotence",
        partial(probes.produce, value_bytes=1_000, settings=IDEMPOTENT),
        throughput(1.3),
    ),
    Line(
        "produce-1k-16k",
        "the same with batch.size=16384",
        partial(probes.produce, value_bytes=1_000, settings=BATCHES_16K),
        throughput(1.8),
    ),
    Line(
        "produce-1k-lz4",
        "the same with compression.type=lz4",
        partial(probes.produce, value_bytes=1_000, settings=LZ4),
        throughput(1.1),
    ),
    Line(
        "produce-100",
        "100 B records, confluent-kafka with its defaults (acks=all)",
        partial(probes.produce, value_bytes=100),
        throughput(1.0, 0.6),
    ),
    Line(
        "produce-100-16k",
        "the same with batch.size=16384",
        partial(probes.produce, value_bytes=100, settings=BATCHES_16K),
        throughput(1.0, 0.6),
    ),
    Line(
        "batching",
        "100 B records through confluent-kafka: one at a time against as the client batches them",
        comparisons.batching,
        (
            Row("single", "/s", HIGHER),
            Row("batched", "/s", HIGHER),
            Row("gain", "x", HIGHER, own_reach=100.0),
            Row("CPU single", "us each", LOWER),
            Row("CPU batched", "us each", LOWER),
        ),
    ),
    *(
        Line(
            f"partitions-{count}",
            f"produce-1k over {count:,} partition{'s' if count > 1 else ''} in turn",
            partial(comparisons.many_partitions, partitions=count),
            throughput(1.0),
        )
        for count in (1, 10, 100, 1_000)
    ),
    Line(
        "delayed-link",
        "64 KB batches through a link with 50 ms of delay each way: 1 against 5 requests in flight",
        comparisons.delayed_link,
        (Row("one", "MB/s", HIGHER), Row("five", "MB/s", HIGHER), Row("gain", "x", HIGHER, own_reach=4.5)),
    ),
    Line(
        "consume-100",
        "100 B records read back by assignment, confluent-kafka with fetch.queue.backoff.ms=5",
        partial(probes.consume, value_bytes=100),
        throughput(1.0),
    ),
    Line(
        "consume-1k",
        "1 KB records, the same",
        partial(probes.consume, value_bytes=1_000),
        throughput(1.0),
    ),
    Line(
        "scan",
        "a topic of 100 B records as an Arrow table by riverlog.scan, beside a loop over confluent-kafka's consumer",
        scans.scan,
        (
            Row("scan", "M rows/s", HIGHER),
            Row("consumer", "M rows/s", HIGHER),
            Row("gain", "x", HIGHER, own_reach=2.0),
            Row("kernel", "M rows/s", NEITHER),
        ),
    ),
    Line(
        "group-consume",
        "consume-1k as the only member of a group, beside the same by assignment",
        groups.consume,
        (
            Row("member", "MB/s", HIGHER, 1.0),
            Row("assigned", "MB/s", HIGHER),
            Row("share", "of assigned", HIGHER, own_reach=0.95),
        ),
    ),
    *(
        Line(
            f"group-join-{members}",
            f"a new group of {members}, from subscribing until each member has its own partition",
            partial(groups.join, members=members),
            rows,
        )
        for members, rows in (
            (1, (Row("classic", "s", LOWER, 1.0), Row("KIP-848", "s", LOWER, 1.0))),
            (10, (Row("classic", "s", LOWER, own_reach=0.5), Row("KIP-848", "s", LOWER, own_reach=1.0))),
            (100, (Row("classic", "s", LOWER, 1.0), Row("KIP-848", "s", LOWER, 1.0))),
            (200, (Row("classic", "s", LOWER, own_reach=5.0), Row("KIP-848", "s", LOWER, own_reach=5.0))),
        )
    ),
    Line(
        "group-commits",
        "offsets committed one after the other by one member, confluent-kafka, each acknowledged before the next",
        groups.commits,
        (Row("rate", "/s", HIGHER, 1.0), Row("CPU", "us each", LOWER)),
    ),
    Line(
        "transactions-1k",
        "1 KB records in transactions of 100 ms, confluent-kafka, beside the same by a plain idempotent producer",
        transactions.large,
        beside_plain(),
    ),
    Line(
        "transactions-1k-10",
        "the same over 10 partitions",
        partial(transactions.large, partitions=10),
        beside_plain(),
    ),
    Line(
        "transactions-small",
        "transactions of one 100 B record, confluent-kafka, committed one after the other",
        transactions.small,
        one_after_the_other("commit "),
    ),
    Line(
        "transactions-bare",
        "the same by plain requests on one connection: a write that begins the transaction, and its end",
        writers.bare,
        one_after_the_other(),
    ),
    Line(
        "init-transactions",
        "init_transactions of a new confluent-kafka client: with an id that is new, and with one that was used before",
        transactions.initialization,
        (Row("new", "ms", LOWER, own_reach=20.0), Row("known", "ms", LOWER, own_reach=20.0)),
    ),
    *(
        Line(
            f"shared-transactions-{members}",
            f"{members} writer{'s' if members > 1 else ''} in one transaction, batch after batch, beside one for each",
            partial(shared.shared, members=members),
            (
                Row("join", "ms", LOWER),
                Row("end", "ms", LOWER),
                Row("rate", "/s", HIGHER),
                Row("alone", "/s", HIGHER),
                Row("gain", "x", HIGHER),
                Row("CPU", "ms each", LOWER),
                Row("CPU alone", "ms each", LOWER),
            ),
            ours_only=True,
        )
        for members in (1, 8, 64)
    ),
    Line(
        "fetch",
        "900 KB batches fetched from the page cache without a client, beside loopback without a broker",
        comparisons.fetch,
        (
            Row("rate", "MB/s", HIGHER, 1.0),
            Row("loopback's own", "MB/s", NEITHER),
            Row("share", "of loopback's own", HIGHER),
            Row("CPU", "s/GB", LOWER),
        ),
    ),
    Line(
        "tail-reads",
        "the newest 1 KB record, read over and over on one connection",
        comparisons.tail_reads,
        (
            Row("p50", "ms", LOWER),
            Row("p99", "ms", LOWER, own_reach=1.0),
            Row("rate", "/s", HIGHER),
            Row("CPU", "us each", LOWER),
        ),
    ),
    Line(
        "small-1x1",
        "Produce requests of one 100 B record, acks=all, from the load generator: 1 connection, 1 in flight",
        partial(probes.small_requests, connections=1, in_flight=1),
        requests(1.1),
    ),
    Line(
        "small-8x1",
        "the same: 8 connections, 1 in flight on each",
        partial(probes.small_requests, connections=8, in_flight=1),
        requests(1.2),
    ),
    Line(
        "small-8x5",
        "the same: 8 connections, 5 in flight on each",
        partial(probes.small_requests, connections=8, in_flight=5),
        requests(2.0),
    ),
    Line(
        "small-64x1",
        "the same: 64 connections, 1 in flight on each",
        partial(probes.small_requests, connections=64, in_flight=1),
        requests(1.2),
    ),
    Line(
        "small-1x100",
        "the same: 1 connection, 100 in flight",
        partial(probes.small_requests, connections=1, in_flight=100),
        requests(8.0),
    ),
    Line(
        "latency-1000",
        "produce to acknowledgement, 100 B, linger.ms=0, acks=all, 1,000 records/s",
        partial(probes.produce_latency, rate=1_000),
        latency(0.8, 0.8),
    ),
    Line(
        "latency-5000",
        "the same at 5,000 records/s",
        partial(probes.produce_latency, rate=5_000),
        latency(0.8, 0.4),
    ),
    Line(
        "end-to-end",
        "one confluent-kafka client to another, 100 B, linger.ms=0, 1,000 records/s",
        partial(probes.end_to_end, rate=1_000),
        latency(0.7, 0.5),
    ),
    Line(
        "fsync-small-8x5",
        "small requests as in small-8x5, every acknowledged record on the medium",
        partial(probes.small_requests, connections=8, in_flight=5, durable=True),
        requests(8.0),
    ),
    Line(
        "fsync-small-64x1",
        "small requests as in small-64x1, every acknowledged record on the medium",
        partial(probes.small_requests, connections=64, in_flight=1, durable=True),
        requests(8.0),
    ),
    Line(
        "fsync-1k-idempotent",
        "produce-1k-idempotent, every acknowledged record on the medium",
        partial(probes.produce, value_bytes=1_000, settings=IDEMPOTENT, durable=True),
        throughput(1.3),
    ),
    Line(
        "fsync-transactions-1k",
        "transactions-1k, every acknowledged record of the topic on the medium",
        partial(transactions.large, durable=True),
        beside_plain(),
    ),
    Line(
        "disk",
        "900 KB batches, 8 in flight, on the medium when acknowledged, beside a file written without a broker",
        comparisons.disk,
        (
            Row("rate", "MB/s", HIGHER),
            Row("disk's own", "MB/s", NEITHER),
            Row("share", "of the disk's own", HIGHER, own_reach=0.8),
            Row("CPU", "s/GB", LOWER),
        ),
    ),
    Line(
        "spark-read-100",
        "100 B records in 4 partitions as a table of Spark, all columns aggregated: riverlog's format and Spark's own",
        partial(spark_tables.read, value_bytes=100, use=spark_tables.aggregate, tuned=True),
        beside_connector(3.0, tuned_gain=1.8),
    ),
    Line(
        "spark-read-100-noop",
        "the same, all columns of every row to a sink that forgets them",
        partial(spark_tables.read, value_bytes=100, use=spark_tables.to_noop),
        beside_connector(2.0),
        ours_only=True,
    ),
    Line(
        "spark-read-1k",
        "spark-read-100 with values of 1 KB",
        partial(spark_tables.read, value_bytes=1_000, use=spark_tables.aggregate),
        beside_connector(2.4),
        ours_only=True,
    ),
    Line(
        "spark-read-1k-noop",
        "spark-read-100-noop with values of 1 KB",
        partial(spark_tables.read, value_bytes=1_000, use=spark_tables.to_noop),
        beside_connector(2.0),
        ours_only=True,
    ),
    Line(
        "spark-stream",
        "100 B records through a stream that takes what is there, to a sink that forgets it: its batch, and all of it",
        spark_streams.stream,
        (
            *beside_connector(1.8),
            Row("whole riverlog", "M rows/s", HIGHER),
            Row("whole connector", "M rows/s", HIGHER),
            Row("whole gain", "x", HIGHER, own_reach=1.3),
        ),
    ),
    Line(
        "spark-windows",
        "100 B of JSON decoded to columns, summed per customer in windows of 10 s with RocksDB, as a stream",
        spark_streams.windows,
        beside_connector(2.0),
        ours_only=True,
    ),
    Line(
        "spark-write",
        "100 B rows of Spark to 4 partitions: at least once, exactly once, and by Spark's own connector",
        spark_tables.write,
        (
            Row("at least once", "M rows/s", HIGHER),
            Row("exactly once", "M rows/s", HIGHER),
            Row("connector", "M rows/s", HIGHER),
            Row("gain at least once", "x", HIGHER, own_reach=1.9),
            Row("gain exactly once", "x", HIGHER, own_reach=1.5),
            Row("share", "of at least once", HIGHER),
            Row("CPU at least once", "s/M rows", LOWER),
            Row("CPU exactly once", "s/M rows", LOWER),
            Row("CPU connector", "s/M rows", LOWER),
        ),
    ),
    Line(
        "spark-write-stream",
        "the same as one batch of a stream, all of the query: exactly once, and by Spark's own connector",
        spark_streams.write,
        beside_connector(1.2),
        ours_only=True,
    ),
    Line(
        "spark-latency",
        "topic to topic through Spark at 100 records/s, from a producer to a consumer of the copy",
        spark_batches.latency,
        (
            Row("p50 riverlog", "ms", LOWER),
            Row("p50 connector", "ms", LOWER),
            Row("p50 ratio", "x", LOWER, own_reach=0.6),
            Row("p99 riverlog", "ms", LOWER),
            Row("p99 connector", "ms", LOWER),
            Row("p99 ratio", "x", LOWER, own_reach=0.6),
        ),
    ),
    *(
        Line(
            f"spark-batch-{kind}",
            f"a {kind} batch of 20 rows: the checkpoint on the node, in a folder, and on a node that flushes",
            partial(spark_batches.batches, stateful=kind == "stateful"),
            (
                Row("node", "ms", LOWER),
                Row("folder", "ms", LOWER),
                Row("node ratio", "of folder", LOWER, own_reach=0.5),
                Row("fsync", "ms", LOWER),
                Row("fsync ratio", "of folder", LOWER),
            ),
            ours_only=True,
        )
        for kind in ("stateless", "stateful")
    ),
    Line(
        "spark-start",
        "the start of a streaming query of Spark until its first batch is done",
        spark_batches.start,
        (
            Row("riverlog", "s", LOWER),
            Row("connector", "s", LOWER),
            Row("ratio", "x", LOWER),
        ),
        ours_only=True,
    ),
    *pipelines.LINES,
)


def select(names: Iterable[str]) -> list[Line]:
    """Pick lines by name or by the beginning of it up to a hyphen; raise ValueError where nothing fits."""
    chosen = []
    for name in names:
        fitting = [line for line in LINES if line.name == name or line.name.startswith(f"{name}-")]
        if not fitting:
            raise ValueError(f"there is no line {name}; known are {', '.join(line.name for line in LINES)}")
        chosen += fitting
    return [line for line in LINES if line in chosen]


(COLD_LINE,) = select(["small-8x1"])

WARM_UP_LINES: Final = select(
    ["produce-1k-16k", "produce-100", "consume-1k", "small-8x1", "small-8x5", "small-64x1", "small-1x100"]
)
"""Half of it small requests: a compiler learns from how often a path is taken, not from how many bytes pass."""
