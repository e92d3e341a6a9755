"""The groups that stand for queries."""

import asyncio

import pytest

from riverlog import Admin, Producer, TopicPartition
from riverlog.checkpoints.pipelines.groups import KNOWN_SECONDS_MAX, Groups
from tests.support.members import ADDRESS, TOPIC, a_node


async def test_offsets_of_topics_that_are_here_are_committed() -> None:
    async with a_node() as universe:
        groups = Groups(ADDRESS, ports=universe.ports)
        offsets = (("elsewhere", 0, 1), (TOPIC, 1, 5), (TOPIC, 99, 5), ("no name!", 0, 1))
        assert await groups.known(()) == ()
        assert await groups.known(offsets) == ((TOPIC, 1, 5),)
        await groups.commit("query", offsets)
        await groups.commit("nothing", offsets[:1])
        async with Admin(ADDRESS, ports=universe.ports) as admin:
            found = await admin.group_offsets("query")
            assert {partition: each.offset for partition, each in found.items()} == {TopicPartition(TOPIC, 1): 5}
            assert "nothing" not in [group.name for group in await admin.list_groups()]
        await groups.close()


async def test_partitions_end_where_their_logs_do() -> None:
    async with a_node() as universe:
        groups = Groups(ADDRESS, ports=universe.ports)
        async with Producer(ADDRESS, ports=universe.ports) as producer:
            await producer.send(TOPIC, b"one", partition=1)
        assert await groups.ends((("elsewhere", 0, 1), (TOPIC, 0, 5), (TOPIC, 1, 0))) == {(TOPIC, 0): 0, (TOPIC, 1): 1}
        assert await groups.ends((("elsewhere", 0, 1),)) == {}
        await groups.close()


async def test_topics_are_asked_for_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    async with a_node() as universe:
        groups = Groups(ADDRESS, ports=universe.ports)
        asked: list[str] = []
        ask = groups._partitions

        async def noted(topic: str) -> int:
            asked.append(topic)
            return await ask(topic)

        monkeypatch.setattr(groups, "_partitions", noted)
        offsets = (("elsewhere", 0, 1), (TOPIC, 1, 5))
        for _ in range(3):
            assert await groups.known(offsets) == ((TOPIC, 1, 5),)
        assert asked == ["elsewhere", TOPIC]
        assert await groups.known(((TOPIC, 99, 5),)) == ()
        assert asked == ["elsewhere", TOPIC, TOPIC]  # it might have grown
        await asyncio.sleep(2 * KNOWN_SECONDS_MAX)
        await groups.known(offsets)
        assert asked[3:] == ["elsewhere", TOPIC]
        await groups.close()


async def test_nothing_is_connected_before_it_is_needed() -> None:
    async with a_node() as universe:
        await Groups("nowhere:9092", ports=universe.ports).close()
