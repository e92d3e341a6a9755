"""Groups as their members see them, by both protocols, against a whole node."""

import asyncio
from itertools import chain
from typing import Any

import pytest

from riverlog import Admin, Consumer
from riverlog.client.consumer import commits, group
from riverlog.client.consumer.commits import CommittedOffset
from riverlog.client.consumer.group import GroupProtocol
from riverlog.client.errors import CommitFailed, KafkaError
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicPartition
from riverlog.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from riverlog.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from tests.support.members import ADDRESS, TOPIC, Member, a_node, write

ZERO = TopicPartition(TOPIC, 0)
PROTOCOLS = [
    pytest.param({"group_protocol": "classic"}, id="cooperative"),
    pytest.param({"group_protocol": "classic", "assignor": "range"}, id="range"),
    pytest.param({"group_protocol": "consumer"}, id="consumer"),
]


def shared(*members: Member) -> bool:
    """Return whether every partition is with one of the members, and each of them has its part."""
    having = [member.partitions for member in members]
    return sorted(chain(*having)) == [0, 1, 2, 3] and max(map(len, having)) - min(map(len, having)) <= 1


async def until_shared(*members: Member, seconds: float = 30.0) -> None:
    async with asyncio.timeout(seconds):
        while not shared(*members):  # noqa: ASYNC110 - nobody else would tell
            await asyncio.sleep(0.1)


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_members_come_and_go_and_every_record_is_read_once(protocol: dict[str, Any]) -> None:
    async with a_node() as universe:
        first = Member(universe, "first", **protocol)
        await write(universe, 40)
        await until_shared(first)
        second = Member(universe, "second", **protocol)
        await until_shared(first, second)
        await write(universe, 40)
        await asyncio.sleep(2)
        await first.stop()
        await until_shared(second)
        await write(universe, 40)
        await asyncio.sleep(2)
        await second.stop()
        read = first.read + second.read
        assert sorted(read) == [(partition, offset) for partition in range(4) for offset in range(30)]
        assert first.problems == second.problems == []


async def test_a_cooperative_rebalance_takes_only_what_moves() -> None:
    async with a_node() as universe:
        first = Member(universe, "first")
        await until_shared(first)
        second = Member(universe, "second")
        await until_shared(first, second)
        assert [sign for sign, _ in first.events] == ["+", "-"]
        assert first.events[1][1] == second.partitions
        await first.stop()
        await second.stop()


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_what_a_member_had_that_vanished_goes_to_others_and_nothing_is_skipped(protocol: dict[str, Any]) -> None:
    async with a_node(group_consumer_session_timeout_ms="45000") as universe:
        members = [Member(universe, name, **protocol) for name in "ab"]
        await until_shared(*members)
        await write(universe, 80)
        await asyncio.sleep(0.3)
        await members[0].die()
        await until_shared(members[1], seconds=60)
        await asyncio.sleep(2)
        await members[1].stop()
        read = {*members[0].read, *members[1].read}
        assert read == {(partition, offset) for partition in range(4) for offset in range(20)}


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_reader_that_takes_too_long_loses_its_partitions_and_joins_again(protocol: dict[str, Any]) -> None:
    async with a_node() as universe:
        await write(universe, 4)
        slow = Member(universe, "slow", think_seconds=30.0, max_poll_interval_ms=10_000, **protocol)
        other = Member(universe, "other", **protocol)
        await asyncio.sleep(29)
        assert other.partitions == [0, 1, 2, 3]
        slow._think_seconds = 0.0
        await until_shared(slow, other)
        assert "lost" in [sign for sign, _ in slow.events]
        await slow.stop()
        await other.stop()


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_static_member_that_comes_back_keeps_its_place(protocol: dict[str, Any]) -> None:
    async with a_node() as universe:
        first = Member(universe, "first", group_instance_id="one", **protocol)
        second = Member(universe, "second", group_instance_id="two", **protocol)
        await until_shared(first, second)
        had, events = first.partitions, len(second.events)
        await first.stop()
        again = Member(universe, "again", group_instance_id="one", **protocol)
        await until_shared(again, second)
        assert again.partitions == had
        assert len(second.events) == events
        await again.stop()
        await second.stop()


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_pattern_finds_topics_that_come_later(protocol: dict[str, Any]) -> None:
    async with a_node() as universe:
        settings = {"topics": (), "pattern": "ord.*", "metadata_age_max_ms": 1_000, **protocol}
        member = Member(universe, "member", **settings)
        await until_shared(member)
        async with Admin(ADDRESS, ports=universe.ports) as admin:
            await admin.create_topic("ordinary", partitions=1)
            await admin.create_topic("other", partitions=1)
        await asyncio.sleep(70)  # a broker looks at patterns now and then
        assert member.consumer is not None
        assert {topic for topic, _ in member.consumer.assignment()} == {TOPIC, "ordinary"}
        await member.stop()


async def test_new_partitions_are_shared_out_too() -> None:
    async with a_node() as universe:
        member = Member(universe, "member", metadata_age_max_ms=1_000)
        await until_shared(member)
        async with Admin(ADDRESS, ports=universe.ports) as admin:
            await admin.create_partitions(TOPIC, 6)
        await asyncio.sleep(5)
        assert member.partitions == [0, 1, 2, 3, 4, 5]
        await member.stop()


async def test_commits_are_where_the_group_goes_on() -> None:
    async with a_node() as universe:
        await write(universe, 40)
        settings: dict[str, Any] = {"group": "g", "auto_offset_reset": "earliest", "ports": universe.ports}
        async with Consumer(ADDRESS, auto_commit=False, **settings) as consumer:
            consumer.subscribe([TOPIC])
            await consumer.poll(5_000, max_records=3)
            assert await consumer.committed(ZERO) == {ZERO: None}
            await consumer.commit()
            await consumer.commit({ZERO: CommittedOffset(7, metadata="seven")})  # type: ignore[arg-type]
            assert await consumer.committed(ZERO) == {ZERO: CommittedOffset(7, -1, "seven")}  # type: ignore[arg-type]
        async with Consumer(ADDRESS, **settings) as consumer:
            consumer.subscribe([TOPIC])
            records = await consumer.poll(5_000, max_records=100)
            while len(records) < 33:
                records += await consumer.poll(5_000, max_records=100)
            assert min(record.offset for record in records if record.partition == 0) == 7


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_what_was_read_before_the_group_went_on_is_not_committed_after_joining_anew(
    protocol: GroupProtocol,
) -> None:
    async with a_node() as universe:
        await write(universe, 40)
        async with Consumer(
            ADDRESS,
            group="billing",
            group_protocol=protocol,
            auto_offset_reset="earliest",
            heartbeat_interval_ms=500,
            ports=universe.ports,
        ) as consumer:
            consumer.subscribe([TOPIC])
            assert await consumer.poll(5_000)
            group = consumer._group
            assert group is not None
            assert group._member is not None
            before = group.member_id, group._member.identity.generation
            gone: object = ConsumerGroupHeartbeatRequest("billing", group.member_id, -1)
            if protocol == "classic":
                gone = LeaveGroupRequest("billing", [MemberIdentity(group.member_id)])
            await group._coordinator.ask(gone)
            await asyncio.sleep(20)
            assert (group.member_id, group._member.identity.generation) != before
            with pytest.raises(CommitFailed):
                await consumer.commit()


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_sixty_members_that_come_at_once_have_shared_within_seconds(protocol: dict[str, Any]) -> None:
    async with a_node(partitions=60) as universe:
        members = [Member(universe, f"{number}", **protocol) for number in range(60)]
        async with asyncio.timeout(5):
            while any(len(member.partitions) != 1 for member in members):  # noqa: ASYNC110 - nobody else would tell
                await asyncio.sleep(0.05)
        for member in members:
            await member.die()


async def test_a_consumer_outside_the_group_may_commit_while_it_is_empty_only() -> None:
    async with a_node() as universe:
        outside = Consumer(ADDRESS, group="billing", ports=universe.ports)
        async with outside:
            outside.assign([ZERO])
            await outside.commit({ZERO: 3})
            assert (await outside.committed())[ZERO] == CommittedOffset(3)  # type: ignore[arg-type]
            member = Member(universe, "member")
            await until_shared(member)
            with pytest.raises(CommitFailed):
                await outside.commit({ZERO: 4})
            await member.stop()


async def test_misuse_gets_a_clear_sentence() -> None:
    async with a_node() as universe:
        async with Consumer(ADDRESS, ports=universe.ports) as alone:
            with pytest.raises(ValueError, match="give its name"):
                alone.subscribe([TOPIC])
            with pytest.raises(ValueError, match="give its name"):
                await alone.commit()
        async with Consumer(ADDRESS, group="g", ports=universe.ports) as member:
            with pytest.raises(ValueError, match="by name or by a pattern"):
                member.subscribe()
            with pytest.raises(ValueError, match="by name or by a pattern"):
                member.subscribe([TOPIC], pattern="x")
            member.subscribe(TOPIC)
            with pytest.raises(ValueError, match="unsubscribe"):
                member.assign([ZERO])
            await member.unsubscribe()
            member.assign([ZERO])
        with pytest.raises(KafkaError, match="not started"):
            Consumer(ADDRESS, group="g", ports=universe.ports).subscribe([TOPIC])
        for wrong in ({"assignor": "sticky"}, {"group_protocol": "new"}):
            with pytest.raises(ValueError, match="choose"):
                Consumer(ADDRESS, group="g", **wrong)  # type: ignore[arg-type]


async def test_a_group_that_shares_in_another_way_is_not_joined() -> None:
    async with a_node() as universe:
        member = Member(universe, "member", assignor="range")
        await until_shared(member)
        async with Consumer(ADDRESS, group="billing", ports=universe.ports) as other:
            other.subscribe([TOPIC])
            with pytest.raises(KafkaError, match="another way") as refused:
                await other.poll(5_000)
            assert refused.value.code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        await member.stop()


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_member_that_could_not_learn_where_to_begin_asks_again(
    protocol: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "the coordinator is not there yet")]

    async def committed_offsets(*given: Any, **named: Any) -> Any:
        if answers:
            raise answers.pop()
        return await commits.committed_offsets(*given, **named)

    monkeypatch.setattr(group, "committed_offsets", committed_offsets)
    async with a_node() as universe:
        await write(universe, 4)
        async with Consumer(
            ADDRESS, group="billing", auto_offset_reset="earliest", ports=universe.ports, **protocol
        ) as consumer:
            consumer.subscribe([TOPIC])
            with pytest.raises(KafkaError, match="not there yet"):
                await consumer.poll(5_000)
            assert await consumer.poll(5_000)


async def test_commit_writes_down_what_others_have_changed_meanwhile() -> None:
    async with a_node() as universe:
        await write(universe, 40)
        async with Consumer(
            ADDRESS, group="g", auto_commit=False, auto_offset_reset="earliest", ports=universe.ports
        ) as consumer:
            consumer.assign([ZERO])
            await consumer.poll(5_000, max_records=4)
            await consumer.commit()
            async with Admin(ADDRESS, ports=universe.ports) as admin:
                await admin.alter_group_offsets("g", {ZERO: 1})
            await consumer.commit()
            assert (await consumer.committed(ZERO))[ZERO] == CommittedOffset(4)  # type: ignore[arg-type]
            with pytest.raises(TypeError, match="an offset is a whole number"):
                await consumer.commit({ZERO: 1.5})  # type: ignore[dict-item]
