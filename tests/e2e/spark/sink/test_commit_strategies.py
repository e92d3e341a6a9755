"""Every way to commit, on a real node: batches count once, whatever is repeated, replaced or left behind."""

from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka import TopicPartition

from riverlog.spark.refusal import SinkRefused
from tests.e2e.clients import create_topic, read_all
from tests.support.node import Node
from tests.support.spark_jobs import StreamJob, travelled, write_job
from tests.support.webhdfs import WebHdfs


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with Node(tmp_path_factory.mktemp("node"), settings={"metrics.port": "-1", "checkpoints.port": "0"}) as node:
        yield node


@pytest.fixture
def topic(node: Node) -> str:
    name = f"out-{uuid4()}"
    create_topic(node.bootstrap, name, partitions=3)
    return name


Start = Callable[[str], StreamJob]


@pytest.fixture(params=["store", "folder"])
def start(request: pytest.FixtureRequest, node: Node, topic: str, tmp_path: Path) -> Start:
    """Return how a query is started under a run's name, with its checkpoint on the node or in a folder."""
    name, query = f"/pipelines/{uuid4()}", str(uuid4())
    places = {"store": f"{node.addresses['checkpoints']}{name}", "folder": str(tmp_path / "checkpoint")}
    location = places[request.param]

    class Query(StreamJob):
        def task(self, writer, batch: int, partition: int, *values: bytes):  # type: ignore[no-untyped-def]
            if request.param == "store":
                planned(node, name, batch)
            return super().task(writer, batch, partition, *values)

        def commit(self, messages, batch: int) -> None:  # type: ignore[no-untyped-def]
            super().commit(messages, batch)
            if request.param == "store":
                rename(node, name, batch)

    def start(run: str) -> StreamJob:
        options = {"kafka.bootstrap.servers": node.bootstrap, "topic": topic, "checkpointlocation": location}
        return Query(options, query=query, run=f"{run:0>8}-0000-0000-0000-000000000000")

    return start


def planned(node: Node, name: str, batch: int) -> None:
    """Plan a batch as Spark does before its tasks run, unless that was done."""
    with WebHdfs(node.addresses["checkpoints"]) as store:
        if str(batch) not in store.names(f"{name}/offsets"):
            assert store.create(f"{name}/offsets/{batch}", b"v1\n{}\n").status == 201


def rename(node: Node, name: str, batch: int) -> None:
    """Do what Spark does behind the sink's commit()."""
    with WebHdfs(node.addresses["checkpoints"]) as store:
        temporary = f"{name}/commits/.{batch}.{uuid4()}.tmp"
        assert store.create(temporary, b'v1\n{"nextBatchWatermarkMs":0}').status == 201
        renamed = store.rename(temporary, f"{name}/commits/{batch}")
        if renamed.status != 200:
            raise SinkRefused(renamed.facts["RemoteException"]["message"])


def committed(node: Node, topic: str) -> list[bytes]:
    """Read all three partitions, once all transactions in them have ended."""
    return sorted(value for index in range(3) for _, value in read_all(node.bootstrap, TopicPartition(topic, index)))


def test_a_batch_is_seen_once_it_is_committed(node: Node, topic: str, start: Start) -> None:
    query = start("1")
    writer = query.plan()
    messages = [query.task(writer, 0, 0, b"a", b"b"), query.task(writer, 0, 1, b"c")]
    assert committed(node, topic) == []
    query.commit(messages, 0)
    query.batch(1, [b"d"], [])
    assert committed(node, topic) == [b"a", b"b", b"c", b"d"]


def test_attempts_that_failed_or_came_second_leave_nothing(node: Node, topic: str, start: Start) -> None:
    query = start("1")
    writer = query.plan()
    query.task(writer, 0, 0, b"failed")
    first, second = query.task(writer, 0, 0, b"a"), query.task(writer, 0, 0, b"a")
    query.commit([first, query.task(writer, 0, 1, b"b")], 0)
    assert second != first
    assert committed(node, topic) == [b"a", b"b"]


def test_what_a_driver_left_open_is_written_again_by_the_next(node: Node, topic: str, start: Start) -> None:
    old = start("1")
    old.batch(0, [b"zero"])
    writer = old.plan()
    left = [old.task(writer, 1, 0, b"left")]
    new = start("2")
    new.batch(1, [b"one"])
    with pytest.raises(SinkRefused, match="batch 1 is not written"):
        old.task(writer, 1, 1, b"too late")
    with pytest.raises(SinkRefused, match="batch 1 is not committed"):
        old.commit(left, 1)
    new.batch(2, [b"two"])
    assert committed(node, topic) == [b"one", b"two", b"zero"]


def test_batches_without_rows_are_batches_also_the_first_of_a_run(node: Node, topic: str, start: Start) -> None:
    first = start("1")
    first.batch(0, [], [])
    first.batch(1, [b"a"], [])
    left = first.plan()
    first.task(left, 2, 0, b"left")
    second = start("2")
    second.batch(2, [], [])
    second.batch(3, [b"b"])
    assert committed(node, topic) == [b"a", b"b"]


def test_a_task_without_rows_asks_nobody() -> None:
    options = {"kafka.bootstrap.servers": "127.0.0.1:1", "topic": "out", "delivery": "at-least-once"}
    write_job(options, [], [])


def test_an_aborted_batch_is_written_again(node: Node, topic: str, start: Start) -> None:
    query = start("1")
    messages = [query.task(query.plan(), 0, 0, b"wrong"), None]
    query.abort(messages, 0)
    query.abort([None], 0)
    start("2").batch(0, [b"right"])
    assert committed(node, topic) == [b"right"]


def test_a_folder_whose_committed_batch_is_replayed_gets_nothing_twice(node: Node, topic: str, tmp_path: Path) -> None:
    options = {
        "kafka.bootstrap.servers": node.bootstrap,
        "topic": topic,
        "checkpointLocation": str(tmp_path / "checkpoint"),
    }
    first, again = (StreamJob(options, query="q", run=f"{run:0>8}-0000-0000-0000-000000000000") for run in "12")
    writer = first.plan()
    messages = [first.task(writer, 0, 0, b"a")]
    first.commit(messages, 0)
    first.commit(messages, 0)
    first.abort(messages, 0)
    again.batch(0, [b"a"])
    again.batch(1, [b"b"])
    assert committed(node, topic) == [b"a", b"b"]


def test_a_query_without_a_name_is_told_to_take_one(node: Node, topic: str) -> None:
    query = StreamJob({"kafka.bootstrap.servers": node.bootstrap, "topic": topic}, query="q", run="r")
    with pytest.raises(SinkRefused, match="checkpointLocation"):
        query.plan()


def test_a_job_is_written_as_a_whole_or_not_at_all(node: Node, topic: str) -> None:
    options = {"kafka.bootstrap.servers": node.bootstrap, "topic": topic}
    write_job(options, [b"a"], [b"b", b"c"], [])
    write_job(options, [b"lost"], [b"lost too"], fails_at=1)
    assert committed(node, topic) == [b"a", b"b", b"c"]


def test_at_least_once_every_attempt_is_seen(node: Node, topic: str) -> None:
    options = {"kafka.bootstrap.servers": node.bootstrap, "topic": topic, "delivery": "at-least-once"}
    write_job(options, [b"a"], [b"b"])
    query = StreamJob(options, query="q", run="00000001-0000-0000-0000-000000000000")
    writer = query.plan()
    messages = [query.task(writer, 0, 0, b"c"), query.task(writer, 0, 0, b"c")]
    query.abort(messages, 0)
    query.commit(messages[1:], 0)
    assert committed(node, topic) == [b"a", b"b", b"c", b"c"]


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
def test_a_topic_that_is_not_there_is_named(node: Node, delivery: str) -> None:
    options = {"kafka.bootstrap.servers": node.bootstrap, "topic": "no such topic", "delivery": delivery}
    with pytest.raises(SinkRefused, match="rows are not written: topic 'no such topic'"):
        write_job(options, [b"a"])


def test_batches_that_a_topic_does_not_take_are_refused_with_the_option_that_helps(node: Node) -> None:
    name = f"small-{uuid4()}"
    create_topic(node.bootstrap, name, partitions=3, config={"max.message.bytes": "2000"})
    options = {"kafka.bootstrap.servers": node.bootstrap, "topic": name}
    rows = [b"x" * 200] * 50
    with pytest.raises(SinkRefused, match=r"kafka\.batch\.size"):
        write_job(options, rows)
    write_job({**options, "kafka.batch.size": "1500"}, rows)
    assert len(committed(node, name)) == 50


def test_a_cluster_that_is_not_there_is_named() -> None:
    options = {"kafka.bootstrap.servers": "127.0.0.1:1", "topic": "out", "kafka.max.block.ms": "500"}
    with pytest.raises(SinkRefused, match=r"127\.0\.0\.1:1"):
        write_job(options, [b"a"])


def test_a_writer_takes_over_once_however_often_it_is_pickled(node: Node, topic: str) -> None:
    query = StreamJob(
        {"kafka.bootstrap.servers": node.bootstrap, "topic": topic, "kafka.transactional.id": topic},
        query="q",
        run="00000001-0000-0000-0000-000000000000",
    )
    writer = query.plan()
    assert travelled(writer)._strategy == travelled(writer)._strategy
    query.commit([query.task(writer, 0, 0, b"a")], 0)
    assert committed(node, topic) == [b"a"]
