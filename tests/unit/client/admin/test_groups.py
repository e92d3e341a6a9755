"""Groups as an administrator sees them, against a whole node."""

import asyncio
from typing import Any

import pytest

from riverlog import Admin, Consumer
from riverlog.client.consumer.commits import CommittedOffset
from riverlog.client.errors import CommitFailed, KafkaError, PartlyFailed
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicPartition
from tests.support.members import ADDRESS, TOPIC, Member, a_node, write

ZERO, ONE = TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 1)


@pytest.mark.parametrize(("protocol", "assignor"), [("classic", "cooperative-sticky"), ("consumer", "uniform")])
async def test_a_group_is_listed_and_described_with_its_members(protocol: Any, assignor: str) -> None:
    async with a_node() as universe:
        await write(universe, 40)
        member = Member(universe, "member", group_protocol=protocol, client_id="app", auto_commit_interval_ms=100)
        await asyncio.sleep(10)
        async with Admin(ADDRESS, ports=universe.ports) as admin:
            (listed,) = await admin.list_groups()
            assert (listed.name, listed.kind.lower(), listed.state) == ("billing", protocol, "Stable")
            assert await admin.list_groups(states=["Empty"]) == []
            found = await admin.describe_group("billing")
            assert (found.kind, found.state, found.assignor) == (protocol, "Stable", assignor)
            assert found.members[0].client_id == "app"
            assert sorted(found.members[0].partitions) == [TopicPartition(TOPIC, index) for index in range(4)]
            assert {offset.offset for offset in (await admin.group_offsets("billing")).values()} == {10}
            with pytest.raises(KafkaError, match="has members"):
                await admin.delete_groups("billing")
            with pytest.raises(CommitFailed):
                await admin.alter_group_offsets("billing", {ZERO: 3})
            await member.stop()
            await admin.alter_group_offsets("billing", {ZERO: 3})
            assert (await admin.group_offsets("billing"))[ZERO] == CommittedOffset.at(3)
            await admin.delete_group_offsets("billing", [ZERO])
            assert ZERO not in await admin.group_offsets("billing")
            await admin.delete_groups("billing")
            assert await admin.list_groups() == []


async def test_a_group_that_is_not_there() -> None:
    async with a_node() as universe, Admin(ADDRESS, ports=universe.ports) as admin:
        for refused in (admin.describe_group("none"), admin.delete_groups("none")):
            with pytest.raises(KafkaError, match="there is no group 'none'") as problem:
                await refused
            assert problem.value.code is ErrorCode.GROUP_ID_NOT_FOUND
        await admin.alter_group_offsets("new", {ZERO: 2})
        with pytest.raises(PartlyFailed) as partly:
            await admin.delete_groups(["new", "none"])
        assert list(partly.value.failures) == ["none"]
        assert await admin.list_groups() == []


async def test_offsets_that_members_read_are_not_forgotten() -> None:
    async with a_node() as universe:
        await write(universe, 4)
        async with (
            Consumer(ADDRESS, group="g", ports=universe.ports, auto_offset_reset="earliest") as consumer,
            Admin(ADDRESS, ports=universe.ports) as admin,
        ):
            consumer.subscribe([TOPIC])
            await consumer.poll(5_000)
            await consumer.commit()
            with pytest.raises(PartlyFailed) as refused:
                await admin.delete_group_offsets("g", [ZERO, ONE])
            assert {problem.code for problem in refused.value.failures.values()} == {
                ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
            }
