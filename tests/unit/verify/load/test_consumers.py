"""Consumers at work on a whole node, on virtual time."""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

import pytest

from riverlog.client.admin.admin import Admin
from riverlog.model.ids import Offset, TopicPartition
from riverlog.verify.checker import judge
from riverlog.verify.history import Isolation, KnownOutcome
from riverlog.verify.labels import value_of
from riverlog.verify.load.consumers import GroupReader, read_everything
from riverlog.verify.load.scene import Protocol, Scene
from tests.support.virtual_time import run
from tests.support.world import Universe

PARTITIONS = [TopicPartition("orders", 0), TopicPartition("orders", 1)]


def on_a_node(work: Callable[[Scene, Admin], Awaitable[None]]) -> None:
    async def scenario() -> None:
        universe = Universe()
        node = universe.node()
        await node.start()
        scene = Scene("node:9092", partitions=PARTITIONS, group="g", producer={}, consumer={}, ports=universe.ports)
        async with scene.admin() as admin:
            await admin.create_topic("orders", partitions=2)
            await work(scene, admin)
        await node.stop()

    run(scenario())


async def write(scene: Scene, *labels: str) -> None:
    async with scene.producer("none") as producer:
        for number, label in enumerate(labels):
            partition = PARTITIONS[number % 2]
            noted = scene.history.write("p", partition, label)
            where = await producer.send("orders", value_of(label, 50), key=label, partition=partition.partition)
            scene.history.acknowledged(noted, where.offset)


def test_readers_see_everything_and_note_where_it_ends() -> None:
    async def work(scene: Scene, admin: Admin) -> None:
        await write(scene, "a", "b", "c")
        for isolation in Isolation:
            assert await read_everything(scene, admin, isolation, seconds=10) == []
        seen = [[(each.offset, each.value) for each in reading.sightings] for reading in scene.history.readings]
        assert seen == [[(0, "a"), (1, "c")], [(0, "b")]] * 2
        assert all(reading.at_end for reading in scene.history.readings)
        assert judge(scene.history).clean

    on_a_node(work)


def test_what_cannot_be_read_in_time_is_named() -> None:
    async def work(scene: Scene, admin: Admin) -> None:
        await write(scene, "a")
        assert await read_everything(scene, admin, Isolation.READ_UNCOMMITTED, seconds=-1) == PARTITIONS[:1]
        assert not scene.history.readings[0].at_end
        assert judge(scene.history).counts == {"unseen": 1}

    on_a_node(work)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_members_hand_on_what_they_read_and_commit(protocol: Protocol) -> None:
    async def work(scene: Scene, admin: Admin) -> None:
        members = [GroupReader(scene, number, protocol=protocol, random=Random(number)) for number in range(2)]
        async with asyncio.TaskGroup() as tasks:
            for member in members:
                tasks.create_task(member.run())
            for turn in range(8):
                await write(scene, *(f"{turn}-{number}" for number in range(4)))
                await asyncio.sleep(1)
            scene.writing = False
            await asyncio.sleep(4)
            scene.consuming = False
        history = scene.history
        assert len({reading.reader for reading in history.readings}) > 2, "members come and go"
        assert {reading.group for reading in history.readings} == {"g"}
        for partition in PARTITIONS:
            assert max(member.reached.get(partition, 0) for member in members) == 16
        assert (await admin.group_offsets("g"))[PARTITIONS[0]].offset == Offset(16)
        assert any(lookup.offset > 0 for lookup in history.lookups)
        assert all(commit.outcome is KnownOutcome.DONE for commit in history.commits)
        await read_everything(scene, admin, Isolation.READ_UNCOMMITTED, seconds=10)
        assert [anomaly.sentence for anomaly in judge(history).anomalies] == []

    on_a_node(work)
