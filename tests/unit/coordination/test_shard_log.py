"""A partition of an internal topic as the log under a machine."""

import errno
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Final
from uuid import UUID

import pytest

from riverlog.coordination.limits import REPLAY_READ_BYTES
from riverlog.coordination.shard_log import Batches, Damaged, ShardLog
from riverlog.metadata.commands.topics import CreateTopics, TopicCreation
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import TopicId, TopicPartition
from riverlog.model.internal_topics import OFFSETS_TOPIC
from riverlog.node import Node
from riverlog.records.batch import BatchHeader
from riverlog.records.record import BatchBuilder, Record, check_size
from riverlog.runner import Unwritable
from tests.support.world import Universe

TOPIC_ID = TopicId(UUID(int=7))


def encode(facts: Sequence[str], now_ms: int, bytes_max: int) -> bytearray:
    builder = BatchBuilder()
    for fact in facts:
        builder.append(fact.encode(), b"", timestamp_ms=now_ms)
        check_size(builder, bytes_max)
    return builder.build()


def decode(header: BatchHeader, records: Sequence[Record]) -> Iterable[str]:
    return [(record.key or b"").decode() for record in records]


BATCHES: Final = SimpleNamespace(encode_facts=encode, decode_facts=decode)


def log_of(
    universe: Universe, node: Node, index: int = 0, batches: Batches[str] = BATCHES, price: str | None = None
) -> ShardLog[str]:
    name = TopicPartition(OFFSETS_TOPIC, index)
    return ShardLog(
        name, node.parts.replicas, universe.clock, batches, price=price, asked_again=lambda facts: "once" not in facts
    )


@asynccontextmanager
async def a_node(universe: Universe, **settings: str) -> AsyncIterator[Node]:
    node = universe.node(**settings)
    await node.start()
    if node.parts.metadata.image.topic(OFFSETS_TOPIC) is None:
        new = TopicCreation(
            OFFSETS_TOPIC, TOPIC_ID, 2, configs={"cleanup.policy": "compact", "segment.bytes": "2000000"}
        )
        await node.parts.controller.submit(CreateTopics((new,)))
    life = universe.disk.life
    yield node
    if universe.disk.life == life:
        await node.stop()


async def test_facts_come_back_in_order_and_nothing_is_begun_before_the_first() -> None:
    universe = Universe()
    async with a_node(universe) as node:
        log = log_of(universe, node)
        assert not log.begun
        assert list(log.replay()) == []
        assert not log.begun
        log.append(["a", "b"])
        log.append(["c"])
        assert log.begun
        assert list(log.replay()) == ["a", "b", "c"]
    async with a_node(universe) as node:
        assert list(log_of(universe, node).replay()) == ["a", "b", "c"]


async def test_what_no_segment_holds_or_has_no_bytes_is_refused_and_the_log_goes_on() -> None:
    universe = Universe()
    async with a_node(universe) as node:
        node._contain = lambda doing, error: None  # type: ignore[method-assign]
        log = log_of(universe, node)
        log.append(["a"])
        partition = node.parts.replicas.get(OFFSETS_TOPIC, 0)
        assert partition is not None
        for fact in ("x" * partition.log.config.segment_bytes, "\ud800"):
            with pytest.raises(Unwritable):
                log.append([fact])
        log.append(["b"])
        assert list(log.replay()) == ["a", "b"]


async def test_a_long_log_is_read_in_pieces() -> None:
    universe = Universe()
    async with a_node(universe) as node:
        log = log_of(universe, node)
        facts = [f"{number}-{'x' * 50_000}" for number in range(20)]
        assert sum(map(len, facts)) > 3 * REPLAY_READ_BYTES
        for fact in facts:
            log.append([fact])
        assert list(log.replay()) == facts


async def test_with_fsync_what_was_committed_survives_the_loss_of_power() -> None:
    universe = Universe()
    async with a_node(universe, durability="fsync") as node:
        log = log_of(universe, node)
        committed = log.append(["kept"])
        assert committed is not None
        assert not committed.done()
        await committed
        await universe.lose_power()
    async with a_node(universe, durability="fsync") as node:
        await node.parts.replicas.wait_recovered(TopicPartition(OFFSETS_TOPIC, 0))
        assert list(log_of(universe, node).replay()) == ["kept"]


async def test_with_the_page_cache_a_fact_is_committed_at_once() -> None:
    universe = Universe()
    async with a_node(universe) as node:
        assert log_of(universe, node).append(["a"]) is None


async def test_a_partition_that_is_not_here_has_no_coordinator() -> None:
    universe = Universe()
    async with a_node(universe) as node:
        with pytest.raises(Refusal) as refused:
            log_of(universe, node, 2).append(["a"])
        assert refused.value.code is ErrorCode.NOT_COORDINATOR


async def test_whoever_waits_when_the_partition_goes_away_is_told() -> None:
    universe = Universe()
    async with a_node(universe, durability="fsync") as node:
        waiting = log_of(universe, node).append(["a"])
        assert waiting is not None
        partition = node.parts.replicas.get(OFFSETS_TOPIC, 0)
        assert partition is not None
        partition.remove()
        with pytest.raises(Refusal) as refused:
            await waiting
        assert refused.value.code is ErrorCode.NOT_COORDINATOR


async def test_a_record_that_cannot_be_read_is_told_and_left_out() -> None:
    def picky(header: BatchHeader, records: Sequence[Record]) -> Iterable[str]:
        for fact in decode(header, records):
            if fact == "junk":
                raise ValueError(fact)
            yield fact

    universe = Universe()
    async with a_node(universe) as node:
        log_of(universe, node).append(["a", "junk", "b"])
        log_of(universe, node).append(["junk"])
        log_of(universe, node).append(["c"])
        log = log_of(universe, node, batches=SimpleNamespace(encode_facts=encode, decode_facts=picky))
        assert list(log.replay()) == ["a", "b", "c"]
        assert node.stats.contained == 2


@pytest.mark.parametrize("lost", ["a", "b", "c"])
async def test_damage_is_told_and_gone_round_where_facts_may_be_lost_and_refused_where_not(
    lost: str,
) -> None:
    universe = Universe()
    async with a_node(universe) as node:
        for fact in "abc":
            log_of(universe, node).append([fact * 100])
    path = f"/data/{OFFSETS_TOPIC}-0/{0:020d}.log"
    universe.disk.damage(path, universe.disk.content(path).index(lost.encode() * 100))
    async with a_node(universe) as node:
        with pytest.raises(Damaged, match=f"is damaged at offset {'abc'.index(lost)};"):
            list(log_of(universe, node).replay())
        replayed = list(log_of(universe, node, price="a word").replay())
        assert replayed == [fact * 100 for fact in "abc" if fact != lost]
        log_of(universe, node).append(["d"])
        assert list(log_of(universe, node, price="a word").replay()) == [*replayed, "d"]


@pytest.mark.parametrize("is_begun", [True, False])
async def test_on_a_full_disk_one_decision_is_refused_unless_nobody_asks_for_it_again(is_begun: bool) -> None:
    universe = Universe()
    async with a_node(universe) as node:
        log = log_of(universe, node)
        if is_begun:
            log.append(["a"])
        universe.disk.fail(0, errno.ENOSPC, on=("write", "make_folder"), lasting=True)
        for _ in range(2):
            with pytest.raises(Unwritable, match="is full") as refused:
                log.append(["b"])
            assert refused.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
        with pytest.raises(Refusal) as away:
            log.append(["c", "once"])
        assert away.value.code is ErrorCode.NOT_COORDINATOR
        assert not isinstance(away.value, Unwritable)
        universe.disk.heal()
        node.parts.registry.directories[0].health.look()
        log.append(["d"])
        assert list(log.replay()) == (["a", "d"] if is_begun else ["d"])
