"""Scans of a real node that other clients write to: transactions of every fate, every codec, many partitions."""

import asyncio
from collections.abc import Iterator

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

import riverlog
from riverlog.arrow.decoding import decoder
from riverlog.records.batch import Compression
from tests.support.node import Node


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with Node(tmp_path_factory.mktemp("scan")) as node:
        yield node


@pytest.fixture(params=["kernel", "plain"])
def _decoder(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoder, "KERNEL_ROWS_MIN", 0)
    if request.param == "plain":
        monkeypatch.setattr(decoder, "has", lambda _module: False)


def create(node: Node, topic: str, partitions: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    if topic not in admin.list_topics().topics:
        admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result()


def producer(node: Node, **settings: object) -> confluent_kafka.Producer:
    return confluent_kafka.Producer({"bootstrap.servers": node.bootstrap, **settings})


@pytest.fixture(scope="module")
def transactions(node: Node) -> Iterator[str]:
    """Write in transactions, of which some are aborted and the last stays open."""
    create(node, "transactions", partitions=2)
    writer = producer(node, **{"transactional.id": "scan"})
    writer.init_transactions()
    for number in range(6):
        writer.begin_transaction()
        for row in range(100):
            writer.produce("transactions", key=b"%d" % number, value=b"%d" % row, partition=row % 2)
        assert writer.flush(30) == 0
        if number % 2 == 0:
            writer.commit_transaction()
        elif number < 5:
            writer.abort_transaction()
    yield "transactions"
    writer.abort_transaction()


@pytest.mark.usefixtures("_decoder")
def test_only_committed_records_are_seen(node: Node, transactions: str) -> None:
    committed = riverlog.scan(transactions, bootstrap=node.bootstrap).to_arrow()
    assert committed["key"].value_counts().to_pylist() == [{"values": key, "counts": 100} for key in (b"0", b"2", b"4")]
    expected = [b"%d" % row for half in (0, 1) for _ in range(3) for row in range(half, 100, 2)]
    assert committed["value"].to_pylist() == expected
    everything = riverlog.scan(transactions, bootstrap=node.bootstrap, isolation_level="read_uncommitted")
    assert everything.to_arrow().num_rows == 600


@pytest.mark.usefixtures("_decoder")
@pytest.mark.parametrize("codec", [codec.name.lower() for codec in Compression])
def test_every_codec(node: Node, codec: str) -> None:
    topic = f"codec-{codec}"
    create(node, topic, partitions=3)
    expected = [b"%d" % row * 20 for row in range(2_000)]
    if riverlog.scan(topic, bootstrap=node.bootstrap, limit=1).to_arrow().num_rows == 0:
        writer = producer(node, **{"compression.type": codec, "linger.ms": 50})
        for row, value in enumerate(expected):
            writer.produce(topic, value=value, partition=row % 3, headers=[("row", b"%d" % row), ("none", None)])
        assert writer.flush(30) == 0
    columns = ["value", "partition", "offset", "headers"]
    table = riverlog.scan(topic, bootstrap=node.bootstrap, columns=columns).to_arrow()
    rows = sorted(table.to_pylist(), key=lambda row: (row["offset"], row["partition"]))
    assert [row["value"] for row in rows] == expected
    assert [row["headers"][0]["value"] for row in rows] == [b"%d" % row for row in range(2_000)]


def test_a_cut_in_the_middle_of_a_batch_is_exact(node: Node) -> None:
    create(node, "cut")
    writer = producer(node, **{"linger.ms": 50})
    for row in range(1_000):
        writer.produce("cut", value=b"%d" % row)
    assert writer.flush(30) == 0
    for since, until in ((0, 1), (1, 999), (500, 501), (999, 1_000), (7, 7)):
        found = riverlog.scan("cut", since=since, until=until, bootstrap=node.bootstrap, columns=["value"]).to_arrow()
        assert found["value"].to_pylist() == [b"%d" % row for row in range(since, until)]


def test_while_a_node_restarts_a_scan_goes_on(node: Node) -> None:
    create(node, "restart", partitions=2)

    async def fill() -> None:
        async with riverlog.Producer(node.bootstrap) as writer:
            for row in range(30_000):
                await writer.ready()
                writer.send_soon("restart", value=bytes(1_000), partition=row % 2)

    asyncio.run(fill())
    rows = 0
    for number, batch in enumerate(riverlog.scan("restart", bootstrap=node.bootstrap)):
        rows += batch.num_rows
        if number == 0:
            node.kill()
            node.start()
    assert rows == 30_000
