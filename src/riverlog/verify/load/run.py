"""A load with a verdict: producers with and without transactions, a group and readers at work on a cluster, which may
be killed and come back.

Topics and a group are made for it and removed again. Producers write for a while and the group reads on; then every
outcome is waited for, the group comes to the end, and readers go through everything from the beginning. What clients
did and saw is judged. Errors are no anomalies: they are counted, and what they leave open stays open.
"""

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any, Final

from riverlog.client.admin.admin import Admin, NewTopic
from riverlog.client.errors import KafkaError
from riverlog.client.ports import Ports
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NO_OFFSET, Offset, TopicPartition
from riverlog.verify.checker import Verdict, judge
from riverlog.verify.history import History, Isolation
from riverlog.verify.limits import VERIFIED_RECORDS_MAX
from riverlog.verify.load.consumers import GroupReader, end_offsets, read_everything
from riverlog.verify.load.scene import PAUSE_SECONDS, Protocol, Scene
from riverlog.verify.load.transactional_writer import TransactionalWriter
from riverlog.verify.load.writer import Writer

FINISH_SECONDS_MAX: Final = 90.0
"""How long each part of the end may take: a broker may have been killed just before, and be large."""
_REMOVE_SECONDS_MAX: Final = 60.0
_GONE: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.GROUP_ID_NOT_FOUND})
_NOT_EMPTY_YET: Final = frozenset({ErrorCode.NON_EMPTY_GROUP})
"""The group of a member that could not say good-bye is empty after the session's time."""


@dataclass(frozen=True, slots=True)
class Load:
    """Who does how much, for how long; the seed chooses partitions, sizes, and when members leave."""

    seconds: float = 10.0
    topics: int = 2
    partitions: int = 3
    producers: int = 3
    transactional: int = 1
    consumers: int = 3
    rate: float = 1_000.0
    protocol: Protocol = "classic"
    replication_factor: int = -1
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Report:
    """The verdict, what clients ran into, and what did not come to an end."""

    verdict: Verdict
    troubles: Mapping[str, int]
    unfinished: Sequence[str]

    @property
    def clean(self) -> bool:
        """Return whether all promises were kept, and all could be looked at."""
        return self.verdict.clean and not self.unfinished


async def verify(
    bootstrap: str,
    load: Load,
    *,
    producer: Mapping[str, Any] | None = None,
    consumer: Mapping[str, Any] | None = None,
    ports: Ports | None = None,
    say: Callable[[str, History], None] = lambda _part, _history: None,
    warn: Callable[[str], None] = lambda _sentence: None,
) -> Report:
    """Run the load and judge it; raise KafkaError where the cluster cannot be used.

    `producer` and `consumer` are settings of the clients; `say` is told what is being done, with the history so far,
    `warn` what could not be removed.
    """
    name = f"riverlog-verify-{uuid.uuid4().hex[:8]}"
    partitions = [
        TopicPartition(f"{name}-{topic}", index) for topic in range(load.topics) for index in range(load.partitions)
    ]
    scene = Scene(
        bootstrap, partitions=partitions, group=name, producer=producer or {}, consumer=consumer or {}, ports=ports
    )
    async with scene.admin() as admin, _topics(scene, admin, load, warn):
        transactional = _transactional(scene, load)
        unfinished = await _work(scene, admin, load, say, transactional)
        for isolation in Isolation:
            say(f"reading everything at {isolation.value}", scene.history)
            behind = await read_everything(scene, admin, isolation, seconds=FINISH_SECONDS_MAX)
            unfinished += [f"{partition} could not be read to its end at {isolation.value}" for partition in behind]
        for each in transactional:
            await each.look_up(seconds=FINISH_SECONDS_MAX)
        say("removing topics", scene.history)
    say("judging", scene.history)
    return Report(judge(scene.history), scene.troubles, unfinished)


def _transactional(scene: Scene, load: Load) -> list[TransactionalWriter]:
    chance = Random(load.seed + 1)
    rate = load.rate / (load.producers + load.transactional)
    return [
        TransactionalWriter(scene, number, rate=rate, random=Random(chance.random()))
        for number in range(load.transactional)
    ]


async def _work(
    scene: Scene,
    admin: Admin,
    load: Load,
    say: Callable[[str, History], None],
    transactional: Sequence[TransactionalWriter],
) -> list[str]:
    """Run producers that write and members that read; return what the group did not come to the end of."""
    loop = asyncio.get_running_loop()
    chance = Random(load.seed)
    members = [
        GroupReader(scene, number, protocol=load.protocol, random=Random(chance.random()))
        for number in range(load.consumers)
    ]
    async with asyncio.TaskGroup() as tasks:
        for member in members:
            tasks.create_task(member.run())
        writing = [
            tasks.create_task(
                Writer(
                    scene,
                    number,
                    rate=load.rate / (load.producers + load.transactional),
                    random=Random(chance.random()),
                ).run()
            )
            for number in range(load.producers)
        ]
        writing += [tasks.create_task(each.run()) for each in transactional]
        end_at = loop.time() + load.seconds
        while loop.time() < end_at and len(scene.history.writes) < VERIFIED_RECORDS_MAX:
            say("writing and reading", scene.history)
            await asyncio.sleep(min(PAUSE_SECONDS, end_at - loop.time()))
        scene.writing = False
        say("waiting for acknowledgements", scene.history)
        await asyncio.wait(writing)
        draining = asyncio.create_task(_drain(scene, admin, members, say))
        try:
            await asyncio.wait([draining])  # whatever becomes of it, the members are to leave first
        finally:
            draining.cancel()
        scene.consuming = False
    behind = draining.result()
    if members:
        await _look_up(scene, admin)
    return [f"the group did not come to the end of {partition}" for partition in behind]


async def _drain(
    scene: Scene, admin: Admin, members: Sequence[GroupReader], say: Callable[[str, History], None]
) -> list[TopicPartition]:
    """Wait until the group has committed the ends of all partitions; give those where it does not come so far."""
    if not members:
        return []
    loop = asyncio.get_running_loop()
    deadline = loop.time() + FINISH_SECONDS_MAX
    ends = await end_offsets(scene, admin, seconds=FINISH_SECONDS_MAX)
    while True:
        behind = [
            partition
            for partition, end in ends.items()
            if max(member.reached.get(partition, 0) for member in members) < end
        ]
        if not behind or loop.time() > deadline:
            return behind
        say("waiting for the group", scene.history)
        await asyncio.sleep(PAUSE_SECONDS)


async def _look_up(scene: Scene, admin: Admin) -> None:
    """Ask where the group has come to in the end."""
    began = scene.history.moment()
    found = await scene.insist(lambda: admin.group_offsets(scene.group), seconds=FINISH_SECONDS_MAX)
    for partition in scene.partitions:
        offset = found[partition].offset if partition in found else NO_OFFSET
        scene.history.looked_up(scene.group, partition, Offset(offset), began=began)


@asynccontextmanager
async def _topics(scene: Scene, admin: Admin, load: Load, warn: Callable[[str], None]) -> AsyncIterator[None]:
    """Make the topics, and in the end remove them and the group, whatever happened."""
    try:
        await admin.create_topics(
            NewTopic(topic, load.partitions, load.replication_factor, {}) for topic in scene.topics
        )
        yield
    finally:
        deadline = asyncio.get_running_loop().time() + _REMOVE_SECONDS_MAX
        if load.consumers:
            await _remove(scene, lambda: admin.delete_groups(scene.group), f"group {scene.group}", deadline, warn)
        for number in range(load.transactional):
            group = TransactionalWriter.group_of(scene, number)
            await _remove(scene, partial(admin.delete_groups, group), f"group {group}", deadline, warn)
        for topic in scene.topics:
            await _remove(scene, partial(admin.delete_topics, topic), f"topic {topic}", deadline, warn)


async def _remove(
    scene: Scene, delete: Callable[[], Awaitable[None]], what: str, deadline: float, warn: Callable[[str], None]
) -> None:
    async def attempt() -> None:
        try:
            await delete()
        except KafkaError as error:
            if error.code not in _GONE:
                raise

    seconds = deadline - asyncio.get_running_loop().time()
    try:
        await scene.insist(attempt, seconds=seconds, passing=_NOT_EMPTY_YET)
    except KafkaError as error:
        warn(f"the {what} could not be removed: {error}")
