"""A producer at work, with brokers that have mishaps."""

import asyncio
from random import Random

import pytest

from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicPartition
from riverlog.verify.history import KnownOutcome, Write
from riverlog.verify.labels import name_of
from riverlog.verify.load.scene import Scene
from riverlog.verify.load.writer import Writer
from riverlog.wire.apis import ApiKey
from tests.support.brokers import FakeCluster, Mishap
from tests.support.virtual_time import run

PARTITIONS = [TopicPartition("orders", 0), TopicPartition("orders", 1)]


def written(*mishaps: Mishap | None, rate: float = 50) -> tuple[Scene, FakeCluster]:
    """Make a producer write for two seconds."""

    async def scenario() -> tuple[Scene, FakeCluster]:
        cluster = FakeCluster()
        cluster.create_topic("orders", partitions=2)
        scene = Scene(
            cluster.bootstrap,
            partitions=PARTITIONS,
            group="g",
            producer={"delivery_timeout_ms": 6_000},
            consumer={},
            ports=cluster.ports,
        )
        cluster.mishap(ApiKey.PRODUCE, *mishaps)
        task = asyncio.create_task(Writer(scene, 1, rate=rate, random=Random(1)).run())
        await asyncio.sleep(2)
        scene.writing = False
        await task
        return scene, cluster

    return run(scenario())


def with_outcome(scene: Scene, outcome: KnownOutcome) -> list[Write]:
    return [write for write in scene.history.writes if write.outcome is outcome]


def test_every_record_is_noted_with_its_place() -> None:
    scene, cluster = written()
    assert len(scene.history.writes) == pytest.approx(100, abs=5)
    assert {write.partition for write in scene.history.writes} == {*PARTITIONS}
    for write in scene.history.writes:
        log = cluster.topics["orders"].logs[write.partition.partition]
        record = log.records()[write.offset]
        assert name_of(record.key, record.value) == write.value
    assert len({write.value for write in scene.history.writes}) == len(scene.history.writes)


def test_a_refusal_of_the_content_is_certain() -> None:
    scene, _ = written(None, ErrorCode.MESSAGE_TOO_LARGE)
    assert with_outcome(scene, KnownOutcome.REFUSED)
    assert not with_outcome(scene, KnownOutcome.UNKNOWN)
    assert scene.troubles["MESSAGE_TOO_LARGE"]


def test_any_other_failure_leaves_it_open() -> None:
    scene, _ = written(None, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    assert with_outcome(scene, KnownOutcome.UNKNOWN)
    assert not with_outcome(scene, KnownOutcome.REFUSED)


def test_a_lost_answer_is_made_good_by_the_producer() -> None:
    scene, _ = written(None, "lose", "drop", ErrorCode.NOT_ENOUGH_REPLICAS)
    assert len(with_outcome(scene, KnownOutcome.DONE)) == len(scene.history.writes)


def test_a_cluster_that_does_not_answer_is_not_written_to_without_bound() -> None:
    scene, _ = written(*["silence"] * 8, rate=5_000)
    assert len(scene.history.writes) < 1_100
