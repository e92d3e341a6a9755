"""Asking the coordinator before a transaction begins: who waits for the answer, and finds it."""

import asyncio
import socket

import pytest
import uvloop

from riverlog.coordination.verification import verify, verify_one
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import ProducerEpoch, ProducerId, TopicPartition
from riverlog.transactions.verification import Question, Unverified, VerificationRefused, Verifications, Verified
from tests.support.verification import ORDERS, header, producer, question, refused


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


async def test_epochs_that_are_all_refused_find_each_its_own_no() -> None:
    verifications = Verifications()
    asked: list[int] = []

    async def write(epoch: int) -> ErrorCode:
        """Come again until there is an answer, as a connection does."""
        while True:
            begun = verifications.begin(producer(epoch), 0, begins_epoch=True, now_ms=0)
            if begun is None or not isinstance(begun.state, Unverified):
                return refused(verifications, header(epoch=epoch))
            asked.append(epoch)
            assert len(asked) < 10, "each forgets the other's no and asks again, for ever"
            await verify(Prompt(ErrorCode.PRODUCER_FENCED), [Question(ORDERS, "id", verifications, begun, True)])

    assert set(await asyncio.gather(*map(write, (2, 4, 4, 3)))) == {ErrorCode.INVALID_PRODUCER_EPOCH}
    assert verifications.begin(producer(1), 0, begins_epoch=True, now_ms=0) is not None


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


async def test_a_yes_that_is_said_at_once_is_not_waited_for() -> None:
    verifications = Verifications()
    assert verify(Prompt(ErrorCode.NONE), [question(verifications)]).done()
    verifications.check(header(), is_known=True)


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


async def test_a_marker_makes_an_answer_on_its_way_worthless() -> None:
    verifications = Verifications()
    asking = verify(Oracle(ErrorCode.NONE), [question(verifications)])
    verifications.end(ProducerId(7))
    await asking
    assert refused(verifications, header()) is ErrorCode.INVALID_TXN_STATE


async def test_a_no_is_told_to_whoever_waited_and_not_remembered() -> None:
    verifications = Verifications()
    told: list[ErrorCode] = []
    asking = verify(Oracle(ErrorCode.TRANSACTION_ABORTABLE), [question(verifications)])
    asking.add_done_callback(lambda _: told.append(refused(verifications, header())))
    await asking
    await asyncio.sleep(1)
    assert told == [ErrorCode.TRANSACTION_ABORTABLE]
    assert refused(verifications, header()) is ErrorCode.INVALID_TXN_STATE


async def test_the_end_of_the_transaction_before_is_awaited_for_a_while() -> None:
    oracle = Oracle(ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NONE)
    asked = question(Verifications(), adds=True)
    assert await verify_one(oracle, asked) == Verified()
    assert len(oracle.asked) == 3


async def test_patience_with_the_end_of_the_transaction_before_ends() -> None:
    oracle = Oracle(ErrorCode.CONCURRENT_TRANSACTIONS)
    answer = await verify_one(oracle, question(Verifications(), adds=True))
    assert isinstance(answer, VerificationRefused)
    assert answer.code is ErrorCode.CONCURRENT_TRANSACTIONS


async def test_nobody_overtakes_a_batch_whose_verification_has_to_be_tried_again() -> None:
    verifications = Verifications()
    await verify(Oracle(ErrorCode.NOT_COORDINATOR), [question(verifications, sequence=0)])
    await asyncio.sleep(1)
    await verify(Oracle(ErrorCode.NONE), [question(verifications, sequence=4)])
    assert refused(verifications, header(4)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    verifications.check(header(0), is_known=True)


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
            loop.add_reader(node, lambda: arrived.done() or arrived.set_result(verification.state))
            question = Question(ORDERS, "id", verifications, verification, knows_abortable=True)
            until = verify(Oracle(ErrorCode.TRANSACTION_ABORTABLE), [question])
            until.add_done_callback(lambda _: found.append(verification.state) or client.send(b"next"))
            found.append(await arrived)
            loop.remove_reader(node)

    uvloop.run(scenario())
    told, kept = found
    assert isinstance(told, VerificationRefused)
    assert kept == Unverified()


async def test_who_asks_alone_is_told_a_no_that_is_kept_for_nobody() -> None:
    verifications = Verifications()
    asked = question(verifications)
    assert isinstance(await verify_one(Prompt(ErrorCode.PRODUCER_FENCED), asked), VerificationRefused)
    assert not verifications.stands(asked.verification)


async def test_a_coordinator_that_fails_leaves_the_transaction_unverified() -> None:
    class Broken(Oracle):
        async def verify(self, *about: object, adds: bool) -> ErrorCode:
            raise AssertionError("not thought of")

    verifications = Verifications()
    with pytest.raises(AssertionError):
        await verify(Broken(), [question(verifications)])
    await asyncio.sleep(1)
    assert refused(verifications, header()) is ErrorCode.INVALID_TXN_STATE
