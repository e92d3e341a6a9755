"""Whole runs against a node on virtual time: one that keeps its promises, and one that is made to break them."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from riverlog.client.admin.admin import Admin
from riverlog.client.errors import KafkaError, Unreachable
from riverlog.model.errors import ErrorCode
from riverlog.verify.history import History, KnownOutcome
from riverlog.verify.load.run import Load, Report, verify
from riverlog.verify.load.scene import Protocol
from tests.support.virtual_time import run
from tests.support.world import Universe

LOAD = Load(seconds=3, topics=2, partitions=2, producers=2, consumers=2, rate=50, seed=3)
Harm = Callable[[Admin, History], Awaitable[object]]


def verified(load: Load = LOAD, *, harm: Harm | None = None, harm_while: str = "") -> Report:
    """Verify a node, doing it some harm once a part begins; in the end nothing may be left behind."""

    async def scenario() -> Report:
        universe = Universe()
        node = universe.node()
        await node.start()
        harming: list[asyncio.Future[object]] = []
        warnings: list[str] = []

        def say(part: str, history: History) -> None:
            if part == harm_while and harm is not None and not harming:
                harming.append(asyncio.ensure_future(harm(admin, history)))

        async with Admin("node:9092", ports=universe.ports) as admin:
            try:
                report = await verify("node:9092", load, ports=universe.ports, say=say, warn=warnings.append)
                await asyncio.gather(*harming)
            finally:
                assert await admin.list_topics() == []
                assert await admin.list_groups() == []
                assert warnings == []
        await node.stop()
        return report

    return run(scenario())


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_node_keeps_its_promises(protocol: Protocol) -> None:
    report = verified(Load(seconds=5, partitions=2, producers=2, consumers=2, rate=40, protocol=protocol))
    assert [anomaly.sentence for anomaly in report.verdict.anomalies] == []
    assert report.clean
    verdict = report.verdict
    assert verdict.acknowledged + verdict.aborted == verdict.written > 150
    assert verdict.seen >= 3 * verdict.acknowledged, "by the group and by two readers"
    assert report.verdict.commits > 0
    assert report.verdict.lookups > 0


def test_transactions_commit_and_abort_and_take_offsets_along() -> None:
    histories: list[History] = []

    async def remember(_: Admin, history: History) -> None:
        histories.append(history)

    load = Load(seconds=10, producers=1, transactional=2, consumers=1, rate=300)
    report = verified(load, harm=remember, harm_while="judging")
    assert [anomaly.sentence for anomaly in report.verdict.anomalies] == []
    assert report.clean
    assert report.verdict.aborted > 0
    outcomes = {transaction.outcome for transaction in histories[0].transactions}
    assert outcomes == {KnownOutcome.DONE, KnownOutcome.REFUSED}
    offsets = [commit for commit in histories[0].commits if commit.transaction is not None]
    assert {commit.group for commit in offsets} == {lookup.group for lookup in histories[0].lookups[-2:]}
    assert all(lookup.offset > 0 for lookup in histories[0].lookups[-2:])


def test_without_a_group_the_readers_are_enough() -> None:
    report = verified(Load(seconds=1, producers=1, transactional=0, consumers=0, rate=50))
    assert report.clean
    assert report.verdict.seen == 2 * report.verdict.written


def test_records_that_vanish_are_lost() -> None:
    async def delete_records(admin: Admin, history: History) -> None:
        partition = history.writes[0].partition
        (end,) = (await admin.list_offsets({partition: "latest"})).values()
        await admin.delete_records({partition: end.offset // 2})

    report = verified(harm=delete_records, harm_while="reading everything at read_committed")
    assert not report.clean
    assert "lost" in report.verdict.counts


def test_a_cluster_that_refuses_is_no_verdict() -> None:
    with pytest.raises(KafkaError) as raised:
        verified(Load(replication_factor=3))
    assert raised.value.code is ErrorCode.INVALID_REPLICATION_FACTOR


async def test_a_cluster_that_does_not_come_back_is_no_verdict_either() -> None:
    universe = Universe()
    node = universe.node()
    await node.start()
    stopping: list[asyncio.Future[None]] = []
    warnings: list[str] = []

    def say(part: str, _history: History) -> None:
        if part == "waiting for acknowledgements":
            stopping.append(asyncio.ensure_future(node.stop()))

    with pytest.raises(Unreachable):
        await verify("node:9092", LOAD, ports=universe.ports, say=say, warn=warnings.append)
    assert [sentence.split()[1] for sentence in warnings] == ["group", "group", "topic", "topic"]
    await asyncio.gather(*stopping)
