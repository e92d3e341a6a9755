"""Consumers at work: members of a group that come and go, and readers that go through everything at the end."""

import asyncio
from collections.abc import Iterable, Mapping
from itertools import count
from random import Random
from typing import Final

from riverlog.client.admin.admin import Admin
from riverlog.client.consumer.consumer import Consumer
from riverlog.client.consumer.fetched_records import ConsumerRecord
from riverlog.client.errors import KafkaError
from riverlog.model.ids import NO_OFFSET, Offset, TopicPartition
from riverlog.verify.history import Isolation, Reading
from riverlog.verify.labels import name_of
from riverlog.verify.load.scene import PAUSE_SECONDS, Protocol, Scene

_POLL_MS: Final = 100
_COMMIT_SECONDS: Final = 0.3
_LIFE_SECONDS: Final = (2.0, 6.0)


class GroupReader:
    """One place in the group, taken by one consumer after another."""

    def __init__(self, scene: Scene, number: int, *, protocol: Protocol, random: Random) -> None:
        self.reached: dict[TopicPartition, Offset] = {}
        """Where the consumers in this place committed last."""
        self._scene = scene
        self._number = number
        self._protocol: Protocol = protocol
        self._random = random

    async def run(self) -> None:
        """Join, read, commit and leave, again and again until told to stop."""
        for life in count():
            if not self._scene.consuming:
                return
            try:
                async with self._scene.member(self._protocol) as consumer:
                    await _Life(self._scene, consumer, f"c{self._number}.{life}", self.reached).live(
                        self._random.uniform(*_LIFE_SECONDS)
                    )
            except KafkaError as error:
                self._scene.trouble(error)
                await asyncio.sleep(PAUSE_SECONDS)


class _Life:
    """One consumer from when it joins to when it leaves."""

    def __init__(self, scene: Scene, consumer: Consumer, name: str, reached: dict[TopicPartition, Offset]) -> None:
        self._scene = scene
        self._consumer = consumer
        self._name = name
        self._reached = reached
        self._readings: dict[TopicPartition, Reading] = {}

    async def live(self, seconds: float) -> None:
        """Read and commit; once nothing is written any more, stay for as long as the scene wants.

        It leaves just after a commit: nobody can take leave of a broker that is down, and the group would wait.
        """
        scene, consumer, loop = self._scene, self._consumer, asyncio.get_running_loop()
        consumer.subscribe(scene.topics, on_assigned=self._assigned, on_revoked=self._gone)
        leave_at, commit_at = loop.time() + seconds, loop.time() + _COMMIT_SECONDS
        while scene.consuming:
            try:
                note(scene, self._readings, consumer, await consumer.poll(_POLL_MS))
            except KafkaError as error:
                scene.trouble(error)
                await asyncio.sleep(PAUSE_SECONDS)
            if loop.time() >= commit_at:
                committed = await self._commit()
                if committed and scene.writing and loop.time() >= leave_at:
                    return
                commit_at = loop.time() + _COMMIT_SECONDS

    async def _assigned(self, partitions: list[TopicPartition]) -> None:
        """Begin a reading of each where the group goes on, and ask once more where that is."""
        history, group = self._scene.history, self._scene.group
        for partition, position in self._consumer.held().items():
            if partition in partitions:  # without a position it begins at the first record, which is 0 here
                start = Offset(0) if position is None else position
                self._readings[partition] = history.read_from(
                    self._name, partition, start, isolation=self._scene.isolation, group=group
                )
        began = history.moment()
        try:
            committed = await self._consumer.committed(*partitions)
        except KafkaError as error:
            self._scene.trouble(error)
            return
        for partition, found in committed.items():
            history.looked_up(group, partition, NO_OFFSET if found is None else found.offset, began=began)

    def _gone(self, partitions: list[TopicPartition]) -> None:
        for partition in partitions:
            self._readings.pop(partition, None)

    async def _commit(self) -> bool:
        """Commit where this consumer stands and tell whether it did; where no answer comes, it may have counted."""
        history = self._scene.history
        positions = {
            partition: reading.position
            for partition, reading in self._readings.items()
            if self._reached.get(partition) != reading.position
        }
        commits = [history.commit(self._scene.group, partition, offset) for partition, offset in positions.items()]
        try:
            await self._consumer.commit(positions)
        except KafkaError as error:
            self._scene.trouble(error)
            return False
        for commit in commits:
            history.commit_acknowledged(commit)
        self._reached.update(positions)
        return bool(positions)


async def read_everything(scene: Scene, admin: Admin, isolation: Isolation, *, seconds: float) -> list[TopicPartition]:
    """Read all partitions from the beginning to where they end; give those whose end was not reached in time."""
    history, loop = scene.history, asyncio.get_running_loop()
    deadline = loop.time() + seconds
    readings = {
        partition: history.read_from(f"reader at {isolation.value}", partition, Offset(0), isolation=isolation)
        for partition in scene.partitions
    }
    ends = await end_offsets(scene, admin, seconds=seconds)
    consumer = scene.reader(isolation)
    await scene.insist(consumer.start, seconds=seconds)
    try:
        consumer.assign(scene.partitions)
        for partition in scene.partitions:
            await consumer.seek(partition, 0)
        while behind := [each for each, reading in readings.items() if reading.position < ends[each]]:
            if loop.time() > deadline:
                break
            try:
                note(scene, readings, consumer, await consumer.poll(_POLL_MS))
            except KafkaError as error:
                scene.trouble(error)
                await asyncio.sleep(PAUSE_SECONDS)
    finally:
        await consumer.close()
    for partition, reading in readings.items():
        history.passed(reading, reading.position, at_end=partition not in behind)
    return behind


async def end_offsets(scene: Scene, admin: Admin, *, seconds: float) -> dict[TopicPartition, Offset]:
    """Ask where the partitions end, behind all that is committed or still undecided."""
    found = await scene.insist(lambda: admin.list_offsets(dict.fromkeys(scene.partitions, "latest")), seconds=seconds)
    return {partition: entry.offset for partition, entry in found.items()}


def note(
    scene: Scene, readings: Mapping[TopicPartition, Reading], consumer: Consumer, records: Iterable[ConsumerRecord]
) -> None:
    """Note what a consumer was given, and where it stands then."""
    given: dict[TopicPartition, list[tuple[Offset, str]]] = {}
    for record in records:
        seen = given.setdefault(TopicPartition(record.topic, record.partition), [])
        seen.append((record.offset, name_of(record.key, record.value)))
    for partition, seen in given.items():
        scene.history.saw(readings[partition], seen)
    for partition, position in consumer.held().items():
        if position is not None and partition in readings:
            scene.history.passed(readings[partition], position)
