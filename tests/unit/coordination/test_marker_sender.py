"""Markers are sent until every partition that exists has its own, whatever happens on the way."""

import asyncio
from collections.abc import Mapping
from random import Random
from typing import NoReturn
from uuid import UUID

import pytest

from riverlog.coordination.limits import MARKER_ANSWER_SECONDS_MAX, MARKER_RETRY_SECONDS_MAX
from riverlog.coordination.marker_sender import MarkerSender
from riverlog.metadata.draft import after
from riverlog.metadata.image import MetadataImage
from riverlog.metadata.records import PartitionRecord, TopicRecord
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicPartition
from riverlog.model.transactions import TransactionMarkers
from riverlog.observe.stats import TransactionStats
from riverlog.transactions.commands import SendMarkers
from tests.support.markers import FaultyMarkers, Markers
from tests.support.transactions import P0, P1, V2, producer_of

TOPIC_ID = UUID(int=1)
IMAGE = after(
    MetadataImage(),
    [
        TopicRecord(name="t", topic_id=TOPIC_ID),
        *(PartitionRecord(partition_id=index, topic_id=TOPIC_ID, replicas=(1,), isr=(1,)) for index in range(3)),
    ],
)
WANTED = SendMarkers("tx", producer_of(7, 4), True, (P0, P1), V2)


async def test_all_are_sent_at_once_and_reported_once() -> None:
    port, written = Markers(), asyncio.Event()
    sender = MarkerSender(port, lambda: IMAGE, TransactionStats())
    sender.send(WANTED, 3, written.set)
    sender.send(WANTED, 3, lambda: pytest.fail("sent twice"))
    await written.wait()
    (asked,) = port.asked
    assert asked == TransactionMarkers(producer_of(7, 4).id, producer_of(7, 4).epoch, 3, True, (P0, P1), V2)


async def test_those_that_are_written_at_once_are_reported_in_the_next_turn_and_not_before() -> None:
    class Here(Markers):
        def write(self, markers: TransactionMarkers) -> "asyncio.Future[Mapping[TopicPartition, ErrorCode]]":
            written: asyncio.Future[Mapping[TopicPartition, ErrorCode]] = asyncio.get_running_loop().create_future()
            written.set_result({each: self._arrive(markers, each) for each in markers.partitions})
            return written

    port, told = Here(), list[str]()
    sender = MarkerSender(port, lambda: IMAGE, TransactionStats())
    sender.send(WANTED, 3, lambda: told.append("written"))
    assert not port.arrived, "whoever decided is answered first"
    await asyncio.sleep(0)
    assert told == ["written"]
    sender.send(WANTED, 3, lambda: told.append("again"))
    await asyncio.sleep(0)
    assert told == ["written", "again"]
    port.codes[P1] = ErrorCode.KAFKA_STORAGE_ERROR
    sender.send(WANTED, 3, lambda: told.append("at last"))
    await asyncio.sleep(1)
    del port.codes[P1]
    await asyncio.sleep(MARKER_RETRY_SECONDS_MAX)
    assert told == ["written", "again", "at last"]


async def test_a_partition_that_refuses_is_asked_again_at_growing_intervals_and_the_others_are_not() -> None:
    port, written = Markers(), asyncio.Event()
    port.codes[P1] = ErrorCode.NOT_LEADER_OR_FOLLOWER
    stats = TransactionStats()
    sender = MarkerSender(port, lambda: IMAGE, stats)
    sender.send(WANTED, 0, written.set)
    await asyncio.sleep(3_600)
    assert not written.is_set()
    assert (stats.markers_waiting, stats.markers_retried) == (2, len(port.asked))
    assert {each.partitions for each in port.asked[1:]} == {(P1,)}
    assert len(port.asked) < 3_600 / MARKER_RETRY_SECONDS_MAX + 20
    del port.codes[P1]
    await written.wait()
    assert set(port.arrived.values()) == {1}
    assert stats.markers_waiting == 0


async def test_an_answer_that_never_comes_is_not_waited_for_for_ever() -> None:
    class Deaf(Markers):
        async def write(self, markers: TransactionMarkers) -> Mapping[TopicPartition, ErrorCode]:
            if len(self.asked) < 2:
                self.asked.append(markers)
                await asyncio.sleep(1_000_000)
            return await super().write(markers)

    port, written = Deaf(), asyncio.Event()
    MarkerSender(port, lambda: IMAGE, TransactionStats()).send(WANTED, 0, written.set)
    began = asyncio.get_running_loop().time()
    await written.wait()
    assert asyncio.get_running_loop().time() - began < 3 * MARKER_ANSWER_SECONDS_MAX


async def test_partitions_that_are_gone_or_know_a_later_epoch_need_no_marker() -> None:
    port, written = Markers(), asyncio.Event()
    gone, beyond = TopicPartition("gone", 0), TopicPartition("t", 9)
    port.codes |= {P0: ErrorCode.INVALID_PRODUCER_EPOCH}
    port.codes |= dict.fromkeys((gone, beyond), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    wanted = SendMarkers("tx", producer_of(7, 4), False, (gone, P0, beyond, P1), V2)
    MarkerSender(port, lambda: IMAGE, TransactionStats()).send(wanted, 0, written.set)
    await written.wait()
    assert list(port.arrived) == [(P1, 7, 4, False)]


@pytest.mark.parametrize("seed", range(20))
async def test_they_arrive_however_faulty_the_way_is(seed: int) -> None:
    port = FaultyMarkers(Random(seed))
    sender = MarkerSender(port, lambda: IMAGE, TransactionStats())
    waiting = [asyncio.Event() for _ in range(5)]
    for number, written in enumerate(waiting):
        partitions = tuple(TopicPartition("t", index) for index in range(3))
        sender.send(SendMarkers("tx", producer_of(number, 1), True, partitions, V2), 0, written.set)
    for written in waiting:
        await written.wait()
    assert len(port.arrived) == 15


class Broken(Markers):
    async def write(self, markers: TransactionMarkers) -> Mapping[TopicPartition, ErrorCode]:
        raise AssertionError("not thought of")


class BrokenAtOnce(Markers):
    def write(self, markers: TransactionMarkers) -> NoReturn:
        raise AssertionError("not thought of")


@pytest.mark.parametrize("port", [Broken(), BrokenAtOnce()])
async def test_a_mistake_of_our_own_is_told_and_the_sending_goes_on(port: Markers) -> None:
    told: list[str] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: told.append(str(context["exception"])))
    written = asyncio.Event()
    sender = MarkerSender(port, lambda: IMAGE, TransactionStats())
    sender.send(WANTED, 0, written.set)
    await asyncio.sleep(3 * MARKER_RETRY_SECONDS_MAX)
    assert len(told) > 1
    assert set(told) == {"not thought of"}
    assert not written.is_set()
    await sender.close()


async def test_closing_stops_what_was_about_to_be_sent() -> None:
    port = Markers()
    sender = MarkerSender(port, lambda: IMAGE, TransactionStats())
    sender.send(WANTED, 0, lambda: pytest.fail("nothing was sent"))
    await sender.close()
    await asyncio.sleep(1)
    assert not port.asked


async def test_closing_stops_it() -> None:
    port = Markers()
    port.codes[P0] = ErrorCode.KAFKA_STORAGE_ERROR
    sender = MarkerSender(port, lambda: IMAGE, TransactionStats())
    sender.send(WANTED, 0, lambda: pytest.fail("not all were written"))
    await asyncio.sleep(1)
    await sender.close()
    asked = len(port.asked)
    await asyncio.sleep(100)
    assert len(port.asked) == asked


async def test_markers_of_a_coordinator_that_was_replaced_are_given_up(caplog: pytest.LogCaptureFixture) -> None:
    port, stats = Markers(), TransactionStats()
    port.codes[P1] = ErrorCode.TRANSACTION_COORDINATOR_FENCED
    sender = MarkerSender(port, lambda: IMAGE, stats)
    sender.send(WANTED, 3, lambda: pytest.fail("not all of them are written"))
    await asyncio.sleep(3_600)
    assert (len(port.asked), stats.markers_waiting) == (1, 0)
    (line,) = caplog.records
    assert line.getMessage() == "transaction markers given up: a later coordinator has written some"
