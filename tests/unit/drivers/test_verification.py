"""Asking the coordinator before a transaction begins: who may append, and who comes too late."""

import asyncio
import socket
from collections.abc import Callable, Coroutine

import pytest
import uvloop

from riverlog.drivers import verification as module
from riverlog.drivers.verification import Question, Verifications, verify
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import ProducerEpoch, ProducerId, TopicPartition
from riverlog.model.transactions import Producer
from riverlog.records.batch import BatchHeader, read_header
from tests.support.reading_committed import transactional_batch
from tests.support.virtual_time import run

ORDERS = TopicPartition("orders", 0)


def on_virtual_time(scenario: Callable[[], Coroutine[None, None, None]]) -> Callable[[], None]:
    def test() -> None:
        run(scenario())

    return test


class Oracle:
    """A coordinator that says what it is told to, the last answer again and again."""

    def __init__(self, *answers: ErrorCode) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, int, int, TopicPartition, bool]] = []

    async def verify(
        self,
        transactional_id: str,
        producer_id: ProducerId,
        producer_epoch: ProducerEpoch,
        partition: TopicPartition,
        *,
        adds: bool,
    ) -> ErrorCode:
        self.asked.append((transactional_id, producer_id, producer_epoch, partition, adds))
        await asyncio.sleep(0.001)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


class Prompt:
    """A coordinator that answers before anybody can wait."""

    def __init__(self, answer: ErrorCode) -> None:
        self._answer = answer

    def verify(
        self,
        transactional_id: str,
        producer_id: ProducerId,
        producer_epoch: ProducerEpoch,
        partition: TopicPartition,
        *,
        adds: bool,
    ) -> "asyncio.Future[ErrorCode]":
        answered: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()
        answered.set_result(self._answer)
        return answered


def producer(epoch: int = 0) -> Producer:
    return Producer(ProducerId(7), ProducerEpoch(epoch))


def header(sequence: int = 0, epoch: int = 0) -> BatchHeader:
    return read_header(transactional_batch(7, sequence, b"value", epoch=epoch))


def question(
    verifications: Verifications, *, sequence: int = 0, epoch: int = 0, adds: bool = False, knows_abortable: bool = True
) -> Question:
    begun = verifications.begin(producer(epoch), sequence, begins_epoch=adds, now_ms=100)
    assert begun is not None
    return Question(ORDERS, "copier", verifications, begun, knows_abortable)


def refused(verifications: Verifications, batch: BatchHeader, *, is_known: bool = True) -> ErrorCode:
    with pytest.raises(Refusal) as refusal:
        verifications.check(batch, is_known=is_known)
    return refusal.value.code


@on_virtual_time
async def test_a_later_epoch_that_was_refused_does_not_stand_in_the_way() -> None:
    verifications = Verifications()
    await verify(Oracle(ErrorCode.PRODUCER_FENCED), [question(verifications, epoch=2)])
    assert refused(verifications, header(epoch=2)) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert verifications.begin(producer(1), 0, begins_epoch=True, now_ms=100) is not None


@on_virtual_time
async def test_epochs_that_are_all_refused_find_each_its_own_no() -> None:
    verifications = Verifications()
    asked: list[int] = []

    async def write(epoch: int) -> ErrorCode:
        """Come again until there is an answer, as a connection does."""
        while True:
            begun = verifications.begin(producer(epoch), 0, begins_epoch=True, now_ms=0)
            if begun is None or begun.answer is not None:
                return refused(verifications, header(epoch=epoch))
            asked.append(epoch)
            assert len(asked) < 10, "each forgets the other's no and asks again, for ever"
            await verify(Prompt(ErrorCode.PRODUCER_FENCED), [Question(ORDERS, "id", verifications, begun, True)])

    assert set(await asyncio.gather(*map(write, (2, 4, 4, 3)))) == {ErrorCode.INVALID_PRODUCER_EPOCH}
    assert verifications.begin(producer(1), 0, begins_epoch=True, now_ms=0) is not None


@on_virtual_time
async def test_a_later_epoch_that_may_be_let_in_yet_keeps_its_place() -> None:
    verifications = Verifications()
    await verify(Oracle(ErrorCode.COORDINATOR_NOT_AVAILABLE), [question(verifications, epoch=2)])
    assert verifications.begin(producer(1), 0, begins_epoch=True, now_ms=100) is None


@on_virtual_time
async def test_a_yes_holds_until_the_transaction_begins_or_ends() -> None:
    verifications = Verifications()
    assert refused(verifications, header()) is ErrorCode.INVALID_TXN_STATE
    oracle = Oracle(ErrorCode.NONE)
    asking = verify(oracle, [question(verifications)])
    assert refused(verifications, header()) is ErrorCode.INVALID_TXN_STATE
    await asking
    await asyncio.sleep(1)
    verifications.check(header(), is_known=True)
    assert oracle.asked == [("copier", 7, 0, ORDERS, False)]
    verifications.end(ProducerId(7))
    assert refused(verifications, header()) is ErrorCode.INVALID_TXN_STATE


@on_virtual_time
async def test_a_yes_that_is_said_at_once_is_not_waited_for() -> None:
    verifications = Verifications()
    assert verify(Prompt(ErrorCode.NONE), [question(verifications)]).done()
    verifications.check(header(), is_known=True)


@on_virtual_time
async def test_a_no_that_is_said_at_once_is_told_to_whoever_waited_and_not_remembered() -> None:
    verifications = Verifications()
    told: list[ErrorCode] = []
    asking = verify(Prompt(ErrorCode.TRANSACTION_ABORTABLE), [question(verifications)])
    assert not asking.done()
    asking.add_done_callback(lambda _: told.append(refused(verifications, header())))
    await asking
    await asyncio.sleep(1)
    assert told == [ErrorCode.TRANSACTION_ABORTABLE]
    assert refused(verifications, header()) is ErrorCode.INVALID_TXN_STATE


@on_virtual_time
async def test_a_marker_makes_an_answer_on_its_way_worthless() -> None:
    verifications = Verifications()
    asking = verify(Oracle(ErrorCode.NONE), [question(verifications)])
    verifications.end(ProducerId(7))
    await asking
    assert refused(verifications, header()) is ErrorCode.INVALID_TXN_STATE


@on_virtual_time
async def test_a_no_is_told_to_whoever_waited_and_not_remembered() -> None:
    verifications = Verifications()
    told: list[ErrorCode] = []
    asking = verify(Oracle(ErrorCode.TRANSACTION_ABORTABLE), [question(verifications)])
    asking.add_done_callback(lambda _: told.append(refused(verifications, header())))
    await asking
    await asyncio.sleep(1)
    assert told == [ErrorCode.TRANSACTION_ABORTABLE]
    assert refused(verifications, header()) is ErrorCode.INVALID_TXN_STATE


@pytest.mark.parametrize(
    ("answer", "adds", "knows_abortable", "expected"),
    [
        (ErrorCode.TRANSACTION_ABORTABLE, False, False, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.PRODUCER_FENCED, False, True, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.INVALID_PRODUCER_ID_MAPPING, False, True, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (ErrorCode.NOT_COORDINATOR, True, True, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.CONCURRENT_TRANSACTIONS, False, True, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.CONCURRENT_TRANSACTIONS, True, True, ErrorCode.CONCURRENT_TRANSACTIONS),
    ],
)
def test_a_no_is_said_in_words_that_the_client_knows(
    answer: ErrorCode, adds: bool, knows_abortable: bool, expected: ErrorCode
) -> None:
    async def scenario() -> ErrorCode:
        asked = question(Verifications(), adds=adds, knows_abortable=knows_abortable)
        oracle = Oracle(answer)
        refusal = await asked.hear(oracle, asked.ask(oracle))
        assert isinstance(refusal, Refusal)
        return refusal.code

    assert run(scenario()) is expected


@on_virtual_time
async def test_the_end_of_the_transaction_before_is_awaited_for_a_while() -> None:
    oracle = Oracle(ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NONE)
    asked = question(Verifications(), adds=True)
    assert await asked.hear(oracle, asked.ask(oracle)) is True
    assert len(oracle.asked) == 3


@on_virtual_time
async def test_nobody_overtakes_a_batch_whose_verification_has_to_be_tried_again() -> None:
    verifications = Verifications()
    await verify(Oracle(ErrorCode.NOT_COORDINATOR), [question(verifications, sequence=0)])
    await asyncio.sleep(1)
    await verify(Oracle(ErrorCode.NONE), [question(verifications, sequence=4)])
    assert refused(verifications, header(4)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    verifications.check(header(0), is_known=True)


@on_virtual_time
async def test_an_epoch_of_its_own_begins_at_sequence_0() -> None:
    for adds in (True, False):
        verifications = Verifications()
        await verify(Oracle(ErrorCode.NONE), [question(verifications, sequence=3, adds=adds)])
        verifications.check(header(3), is_known=True)
        if adds:
            assert refused(verifications, header(3), is_known=False) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        else:
            verifications.check(header(3), is_known=False)


@on_virtual_time
async def test_a_fenced_producer_disturbs_nobody() -> None:
    verifications = Verifications()
    await verify(Oracle(ErrorCode.NONE), [question(verifications, epoch=1)])
    assert verifications.begin(producer(0), 0, begins_epoch=False, now_ms=100) is None
    assert refused(verifications, header(epoch=0)) is ErrorCode.INVALID_PRODUCER_EPOCH
    verifications.check(header(epoch=1), is_known=True)
    await verify(Oracle(ErrorCode.NONE), [question(verifications, epoch=2, sequence=9)])
    verifications.check(header(9, epoch=2), is_known=True)
    assert refused(verifications, header(epoch=1)) is ErrorCode.INVALID_PRODUCER_EPOCH


@on_virtual_time
async def test_those_that_nobody_comes_back_to_are_forgotten() -> None:
    verifications = Verifications()
    await verify(Oracle(ErrorCode.NONE), [question(verifications)])
    verifications.expire(100)
    verifications.check(header(), is_known=True)
    verifications.expire(101)
    assert refused(verifications, header()) is ErrorCode.INVALID_TXN_STATE


def test_there_are_never_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PRODUCERS_PER_PARTITION_MAX", 2)
    verifications = Verifications()
    for number in (7, 8, 9):
        other = Producer(ProducerId(number), ProducerEpoch(0))
        begun = verifications.begin(other, 0, begins_epoch=False, now_ms=0)
        assert begun is not None
        begun.answer = True
    assert refused(verifications, header()) is ErrorCode.INVALID_TXN_STATE
    verifications.check(header()._replace(producer_id=ProducerId(9)), is_known=True)


def test_a_request_that_comes_directly_behind_an_answer_is_asked_for_anew() -> None:
    """The loop of a node looks at its sockets before it does what was put off until soon."""
    found: list[object] = []

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        verifications = Verifications()
        verification = verifications.begin(producer(), 0, begins_epoch=True, now_ms=0)
        assert verification is not None
        client, node = socket.socketpair()
        with client, node:
            arrived = loop.create_future()
            loop.add_reader(node, lambda: arrived.done() or arrived.set_result(verification.answer))
            question = Question(ORDERS, "id", verifications, verification, knows_abortable=True)
            until = verify(Oracle(ErrorCode.TRANSACTION_ABORTABLE), [question])
            until.add_done_callback(lambda _: found.append(verification.answer) or client.send(b"next"))
            found.append(await arrived)
            loop.remove_reader(node)

    uvloop.run(scenario())
    refused, kept = found
    assert isinstance(refused, Refusal)
    assert kept is None
