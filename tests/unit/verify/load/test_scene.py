"""What clients of a run share."""

import asyncio

import pytest

from riverlog.client.errors import KafkaError, TimedOut
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicPartition
from riverlog.verify.history import Isolation
from riverlog.verify.load.scene import Scene


def scene() -> Scene:
    return Scene(
        "node:9092",
        partitions=[TopicPartition("b", 0), TopicPartition("a", 0), TopicPartition("a", 1)],
        group="g",
        producer={"linger_ms": 7},
        consumer={"fetch_bytes_min": 10},
        ports=None,
    )


async def test_clients_are_made_with_the_settings_that_were_given() -> None:
    made = scene()
    assert made.topics == ["a", "b"]
    for client in (made.producer("lz4"), made.member("consumer"), made.reader(Isolation.READ_COMMITTED)):
        assert "node:9092" in repr(client)


async def test_what_may_pass_is_asked_again_and_counted() -> None:
    made = scene()
    mishaps = [TimedOut("late"), KafkaError(ErrorCode.NON_EMPTY_GROUP, "not yet"), TimedOut("late")]

    async def ask() -> str:
        if mishaps:
            raise mishaps.pop()
        return "answer"

    passing = frozenset({ErrorCode.NON_EMPTY_GROUP})
    assert await made.insist(ask, seconds=10, passing=passing) == "answer"
    assert made.troubles == {"REQUEST_TIMED_OUT": 2, "NON_EMPTY_GROUP": 1}


@pytest.mark.parametrize(
    ("error", "seconds"),
    [(KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, "no"), 0.0), (TimedOut("late"), 10.25)],
)
async def test_what_will_not_pass_is_raised(error: KafkaError, seconds: float) -> None:
    async def ask() -> None:
        raise error

    began = asyncio.get_running_loop().time()
    with pytest.raises(KafkaError) as raised:
        await scene().insist(ask, seconds=10)
    assert raised.value is error
    assert asyncio.get_running_loop().time() - began == seconds
