"""Batches and the handles to the records in them."""

import asyncio

import pytest

from riverlog.client.errors import KafkaError, failure
from riverlog.client.producer.deliveries import Batch, Delivery
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import Offset, ProducerEpoch, ProducerId, TopicPartition
from riverlog.records.batch import check_produced
from riverlog.records.record import BatchBuilder, read_batch

REFUSED = failure(ErrorCode.NOT_LEADER_OR_FOLLOWER, "orders-0")


def batch_of_one() -> Batch:
    loop = asyncio.get_running_loop()
    batch = Batch(TopicPartition("orders", 0), BatchBuilder(), order=1, created=0.0, deadline=9.0, loop=loop)
    batch.append(None, b"x", (), 0)
    return batch


async def test_a_batch_is_numbered_and_closed_once_it_is_sent() -> None:
    batch = batch_of_one()
    assert batch.is_open
    batch.number(ProducerId(7), ProducerEpoch(2), 40)
    assert not batch.is_open
    header = check_produced(batch.bytes, batch_bytes_max=1_000)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 2, 40)
    batch.number(ProducerId(7), ProducerEpoch(3), 0)
    assert check_produced(batch.bytes, batch_bytes_max=1_000).producer_epoch == 3
    assert [record.value for record in read_batch(batch.bytes)] == [b"x"]


async def test_a_delivery_gives_its_own_offset_and_the_brokers_time_where_it_counts() -> None:
    batch = batch_of_one()
    first, second = Delivery(10), Delivery(20)
    first.place(batch, 0)
    second.place(batch, batch.append(None, b"y", (), 20))
    assert not first.done
    with pytest.raises(asyncio.InvalidStateError):
        first.result()
    batch.succeed(Offset(40))
    assert await second == ("orders", 0, 41, 20)
    batch.log_append_time_ms = 99
    assert first.result() == ("orders", 0, 40, 99)
    assert "offset=40" in repr(first)


async def test_a_cancelled_waiter_takes_nobody_with_it() -> None:
    batch = batch_of_one()
    first, second = Delivery(0), Delivery(0)
    first.place(batch, 0)
    second.place(batch, 0)
    waiting = [asyncio.ensure_future(first), asyncio.ensure_future(second)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await asyncio.sleep(0)
    batch.succeed(Offset(3))
    assert (await waiting[1]).offset == 3


async def test_a_failure_is_told_to_all_and_remembered_as_seen() -> None:
    batch = batch_of_one()
    delivery = Delivery(0)
    delivery.place(batch, 0)
    batch.fail(REFUSED)
    assert delivery.error is REFUSED
    assert not batch.observed
    with pytest.raises(KafkaError):
        await delivery
    assert batch.observed


async def test_records_of_a_batch_share_a_future_that_is_there_once_they_are_placed() -> None:
    batch = batch_of_one()
    first, second = Delivery(0), Delivery(0)
    assert first.batch_future is None
    first.place(batch, 0)
    second.place(batch, 1)
    assert first.batch_future is second.batch_future is batch.future
