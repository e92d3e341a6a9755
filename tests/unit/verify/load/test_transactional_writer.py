"""A transactional producer at work on a whole node, and on one whose answers are lost."""

import asyncio
from random import Random

import pytest

from riverlog import Producer
from riverlog.client.producer.transactions import FENCED
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicPartition
from riverlog.verify.checker import judge
from riverlog.verify.history import Isolation, KnownOutcome
from riverlog.verify.load.consumers import read_everything
from riverlog.verify.load.scene import Scene
from riverlog.verify.load.transactional_writer import TransactionalWriter
from riverlog.wire.messages.end_txn import EndTxnRequest
from riverlog.wire.messages.produce import ProduceRequest
from tests.support.members import ADDRESS, TOPIC, a_node
from tests.support.mishaps import Mishaps

PARTITIONS = [TopicPartition(TOPIC, index) for index in range(2)]


async def written(*, thefts: int = 0, mishaps: Mishaps | None = None, lost: type[object] | None = None) -> Scene:
    """Make writers with one transactional id write for some seconds, and read everything."""
    async with a_node(partitions=2) as universe:
        scene = Scene(ADDRESS, partitions=PARTITIONS, group="g", producer={}, consumer={}, ports=universe.ports)
        writer = TransactionalWriter(scene, 0, rate=100, random=Random(1))
        task = asyncio.create_task(writer.run())
        await asyncio.sleep(1)
        if mishaps is not None and lost is not None:
            mishaps.lost += [lost] * 3
        for _ in range(thefts):
            async with Producer(ADDRESS, transactional_id=writer.group, ports=universe.ports):
                await asyncio.sleep(0.2)
        await asyncio.sleep(4)
        scene.writing = False
        await task
        await writer.look_up(seconds=60)
        async with scene.admin() as admin:
            for isolation in Isolation:
                assert await read_everything(scene, admin, isolation, seconds=60) == []
    return scene


async def test_what_it_commits_is_there_and_what_it_aborts_is_not() -> None:
    scene = await written()
    assert judge(scene.history).anomalies == ()
    assert {each.outcome for each in scene.history.transactions} == {KnownOutcome.DONE, KnownOutcome.REFUSED}
    assert any(commit.transaction is not None for commit in scene.history.commits)
    assert scene.history.lookups[-1].offset > 0


@pytest.mark.parametrize("lost", [EndTxnRequest, ProduceRequest])
async def test_answers_that_are_lost_accuse_nobody(monkeypatch: pytest.MonkeyPatch, lost: type[object]) -> None:
    scene = await written(mishaps=Mishaps(monkeypatch), lost=lost)
    assert judge(scene.history).anomalies == ()
    assert scene.history.transactions[-1].outcome is not KnownOutcome.UNKNOWN


async def test_one_that_is_fenced_accuses_nobody_and_another_goes_on() -> None:
    scene = await written(thefts=5)
    assert judge(scene.history).anomalies == ()
    assert {ErrorCode[name] for name in scene.troubles} & FENCED
