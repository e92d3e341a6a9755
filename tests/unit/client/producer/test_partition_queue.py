"""The order and the sequences of a partition's batches, without a network."""

import asyncio
from uuid import UUID

from riverlog.client.errors import TimedOut, failure
from riverlog.client.producer.deliveries import Batch
from riverlog.client.producer.partition_queue import NEVER, PartitionQueue
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NodeId, Offset, ProducerEpoch, ProducerId, TopicId, TopicPartition
from riverlog.records.batch import Compression, read_header

HERE = TopicPartition("orders", 0)
NODE = NodeId(1)
REFUSED = failure(ErrorCode.NOT_LEADER_OR_FOLLOWER, "orders-0")


class Line:
    """A queue with batches of one record each, sent by hand."""

    def __init__(self, *, idempotent: bool = True, transactional: bool = False) -> None:
        self.queue = PartitionQueue(HERE, idempotent=idempotent, transactional=transactional)
        self.loop = asyncio.get_running_loop()

    def add(self, count: int = 1, *, deadline: float = 100.0) -> list[Batch]:
        batches = []
        for _ in range(count):
            batch = self.queue.start_batch(Compression.NONE, None, now=0.0, deadline=deadline, loop=self.loop)
            batch.append(None, b"x", (), 0)
            batches.append(batch)
        return batches

    def ready(self) -> bool:
        return self.queue.ready_at(linger_seconds=0.0, batch_bytes_max=1, hurry=True) < NEVER

    def send(self) -> Batch:
        assert self.ready()
        if self.queue.needs_new_epoch():
            self.epoch += 1
            self.queue.start_epoch(ProducerId(7), ProducerEpoch(self.epoch))
        batch = self.queue.take(NODE)
        self.queue.number(batch, ProducerId(7), ProducerEpoch(self.epoch))
        return batch

    epoch = 0

    def send_all(self) -> list[Batch]:
        sent = []
        while self.ready():
            sent.append(self.send())
        return sent

    def establish(self) -> None:
        self.add()
        self.queue.acknowledged(self.send(), Offset(0), -1)


def sequences(batches: list[Batch]) -> list[tuple[int, int]]:
    return [(header.producer_epoch, header.base_sequence) for header in (read_header(one.bytes) for one in batches)]


async def test_the_first_batch_is_alone_until_the_broker_knows_us() -> None:
    line = Line()
    line.add(7)
    first = line.send_all()
    assert len(first) == 1
    line.queue.acknowledged(first[0], Offset(0), -1)
    assert len(line.send_all()) == 5, "and then five at a time"


async def test_the_first_batch_for_a_topic_that_was_created_again_is_alone() -> None:
    line = Line()
    line.establish()
    line.queue.belongs_to(TopicId(UUID(int=1)))
    line.add(3)
    (first,) = line.send_all()
    line.queue.acknowledged(first, Offset(0), -1)
    line.queue.belongs_to(TopicId(UUID(int=1)))
    assert len(line.send_all()) == 2


async def test_sequences_count_records() -> None:
    line = Line()
    line.establish()
    (batch,) = line.add()
    batch.append(None, b"y", (), 0)
    line.add(2)
    assert sequences(line.send_all()) == [(0, 1), (0, 3), (0, 4)]


async def test_nothing_is_sent_while_some_came_back_and_some_did_not() -> None:
    line = Line()
    line.establish()
    line.add(7)
    sent = line.send_all()
    line.queue.came_back(sent[0], REFUSED, not_before=3.0)
    assert not line.ready()
    line.queue.came_back(sent[2], REFUSED, not_before=3.0)
    line.queue.came_back(sent[1], REFUSED, not_before=3.0)
    line.queue.came_back(sent[4], REFUSED, not_before=3.0)
    assert not line.ready()
    line.queue.came_back(sent[3], REFUSED, not_before=3.0)
    assert line.queue.ready_at(linger_seconds=0, batch_bytes_max=1, hurry=True) == 3.0
    assert line.send_all() == sent, "in the old order, whatever order they came back in"
    assert sequences(sent) == [(0, number) for number in range(1, 6)], "and with their old sequences"


async def test_a_batch_that_is_sent_again_stays_among_the_last_five() -> None:
    line = Line()
    line.establish()
    line.add(9)
    oldest, *others = line.send_all()
    line.queue.came_back(oldest, REFUSED, not_before=0)
    for batch in others:
        line.queue.acknowledged(batch, Offset(1), -1)
    assert line.queue.must_be_there(oldest)
    assert line.send_all() == [oldest], "another one behind it, and the broker would no longer know it"
    line.queue.acknowledged(oldest, Offset(1), -1)
    assert sequences(line.send_all()) == [(0, number) for number in range(6, 10)]


async def test_out_of_order_behind_a_refused_batch_is_only_a_retry() -> None:
    line = Line()
    line.establish()
    line.add(3)
    sent = line.send_all()
    line.queue.came_back(sent[0], REFUSED, not_before=0)
    line.queue.out_of_order(sent[1], REFUSED, not_before=0)
    line.queue.out_of_order(sent[2], REFUSED, not_before=0)
    assert line.send_all() == sent
    assert sequences(sent) == [(0, 1), (0, 2), (0, 3)]


async def test_out_of_order_with_nothing_before_it_starts_a_new_epoch() -> None:
    line = Line()
    line.establish()
    line.add(3)
    sent = line.send_all()
    for batch in sent:
        line.queue.out_of_order(batch, REFUSED, not_before=0)
    again = line.send()
    assert again is sent[0]
    assert sequences([again]) == [(1, 0)]
    line.queue.acknowledged(again, Offset(1), -1)
    assert sequences(line.send_all()) == [(1, 1), (1, 2)]


async def test_behind_a_batch_that_failed_for_good_sequences_start_again() -> None:
    line = Line()
    line.establish()
    line.add(2)
    failed, behind = line.send_all()
    line.queue.failed(failed, failure(ErrorCode.MESSAGE_TOO_LARGE, "orders-0"))
    line.queue.out_of_order(behind, REFUSED, not_before=0)
    assert sequences([line.send()]) == [(1, 0)]


async def test_a_batch_whose_fate_is_unknown_keeps_those_behind_it_at_their_sequences() -> None:
    line = Line()
    line.establish()
    (lost,) = line.add(deadline=5.0)
    line.add()
    sent = line.send_all()
    for batch in sent:
        line.queue.came_back(batch, REFUSED, not_before=0)
    assert line.queue.expire(6.0, TimedOut("late")) == [lost]
    assert sequences([line.send()]) == [(0, 2)], "if the lost one is in the log, this one follows it"
    line.queue.acknowledged(sent[1], Offset(2), -1)
    line.add()
    assert sequences([line.send()]) == [(0, 3)], "and it was"


async def test_what_runs_out_of_time_in_flight_stays_in_the_line_until_it_is_back() -> None:
    line = Line()
    line.establish()
    line.add(deadline=5.0)
    (batch,) = line.send_all()
    assert line.queue.expire(5.0, TimedOut("late")) == [batch]
    assert batch.done
    assert line.queue.in_flight == [batch]
    line.queue.came_back(batch, REFUSED, not_before=0)
    assert not line.queue
    line.add()
    assert sequences([line.send()]) == [(1, 0)], "the broker may lack its sequence: start again"


async def test_what_is_discarded_leaves_a_gap_if_it_had_a_sequence() -> None:
    line = Line(transactional=True)
    batches = line.add(3)
    line.queue.acknowledged(line.send(), Offset(0), -1)
    sent = line.send()
    assert line.queue.discard(REFUSED) == batches[2:]
    assert batches[2].error is REFUSED
    assert not line.queue.has_gap
    assert line.queue.in_flight == [sent]
    line.queue.came_back(sent, REFUSED, not_before=0.0)
    assert line.queue.discard(REFUSED) == [sent]
    assert line.queue.has_gap
    assert not line.queue.needs_new_epoch()  # the coordinator of the transaction gives it
    line.queue.start_epoch(ProducerId(7), ProducerEpoch(1))
    assert not line.queue.has_gap


async def test_batches_of_a_transaction_say_so() -> None:
    line = Line(transactional=True)
    line.add()
    assert read_header(line.send().bytes).is_transactional


async def test_sequences_wrap() -> None:
    line = Line()
    line.establish()
    line.queue._next_sequence = 0x7FFF_FFFF
    line.add(2)
    assert sequences(line.send_all()) == [(0, 0x7FFF_FFFF), (0, 0)]


async def test_without_idempotence_nothing_is_numbered_and_five_go_at_once() -> None:
    line = Line(idempotent=False)
    line.add(7)
    for _ in range(5):
        assert line.ready()
        line.queue.take(NODE)
    assert not line.ready()
    assert not line.queue.needs_new_epoch()
    assert read_header(line.queue.in_flight[0].bytes).base_sequence == -1


async def test_a_batch_lingers_until_it_is_full_or_old_or_hurried() -> None:
    line = Line(idempotent=False)
    (batch,) = line.add()
    queue = line.queue
    assert queue.ready_at(linger_seconds=2.0, batch_bytes_max=1_000, hurry=False) == 2.0
    assert queue.ready_at(linger_seconds=2.0, batch_bytes_max=1_000, hurry=True) == 0.0
    assert queue.ready_at(linger_seconds=2.0, batch_bytes_max=batch.size, hurry=False) == 0.0
    line.add()
    assert queue.ready_at(linger_seconds=2.0, batch_bytes_max=1_000, hurry=False) == 0.0
