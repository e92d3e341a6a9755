"""Which transactions may begin in a partition: who may append, and who comes too late."""

import pytest

from riverlog.model.errors import ErrorCode
from riverlog.model.ids import ProducerEpoch, ProducerId
from riverlog.model.transactions import ProducerIdentity
from riverlog.transactions import verification as module
from riverlog.transactions.limits import VERIFICATION_PATIENCE_SECONDS
from riverlog.transactions.verification import Unverified, VerificationRefused, Verifications, Verified
from tests.support.verification import header, producer, question, refused

NO = VerificationRefused(ErrorCode.INVALID_TXN_STATE, "it is not open")


def answered(verifications: Verifications, code: ErrorCode, *, sequence: int = 0, epoch: int = 0) -> None:
    question(verifications, sequence=sequence, epoch=epoch).settle(code)


def test_nothing_is_let_in_before_the_answer_and_all_of_the_transaction_behind_it() -> None:
    verifications = Verifications()
    assert refused(verifications, header()) is ErrorCode.INVALID_TXN_STATE
    asked = question(verifications)
    assert not asked.is_answered
    assert refused(verifications, header()) is ErrorCode.INVALID_TXN_STATE
    assert asked.settle(ErrorCode.NONE) == Verified()
    assert asked.verification.is_verified
    verifications.check(header(), is_known=True)
    verifications.end(ProducerId(7))
    assert refused(verifications, header()) is ErrorCode.INVALID_TXN_STATE


def test_an_answer_that_comes_behind_a_marker_lets_nothing_in() -> None:
    verifications = Verifications()
    late = question(verifications)
    verifications.end(ProducerId(7))
    assert not verifications.stands(late.verification)
    late.settle(ErrorCode.NONE)
    assert refused(verifications, header()) is ErrorCode.INVALID_TXN_STATE
    again = question(verifications)
    assert again.verification is not late.verification
    late.settle(ErrorCode.NONE)
    assert refused(verifications, header()) is ErrorCode.INVALID_TXN_STATE


def test_an_answer_that_is_lost_or_comes_twice_changes_nothing() -> None:
    verifications = Verifications()
    lost, other = question(verifications), question(verifications)
    assert lost.verification is other.verification
    other.settle(ErrorCode.NONE)
    other.settle(ErrorCode.NONE)
    verifications.check(header(), is_known=True)


def test_a_no_is_kept_until_the_last_who_waited_has_heard_it() -> None:
    verifications = Verifications()
    verification = question(verifications).verification
    verifications.wait(verification)
    verifications.wait(verification)
    verifications.settle(verification, NO)
    for _ in range(2):
        assert refused(verifications, header()) is NO.code
        assert question(verifications).is_answered
        verifications.leave(verification)
    assert not question(verifications).is_answered
    assert not verifications.stands(verification)


def test_a_yes_is_kept_though_nobody_waits() -> None:
    verifications = Verifications()
    verification = question(verifications).verification
    verifications.wait(verification)
    verifications.settle(verification, Verified())
    verifications.leave(verification)
    verifications.check(header(), is_known=True)


def test_nobody_leaves_who_did_not_wait() -> None:
    verifications = Verifications()
    with pytest.raises(AssertionError):
        verifications.leave(question(verifications).verification)


def test_a_later_epoch_that_was_refused_does_not_stand_in_the_way() -> None:
    verifications = Verifications()
    verification = question(verifications, epoch=2).verification
    verifications.wait(verification)
    verifications.settle(verification, NO)
    assert refused(verifications, header(epoch=2)) is NO.code
    assert verifications.begin(producer(1), 0, begins_epoch=True, now_ms=100) is not None
    verifications.leave(verification)
    assert verifications.begin(producer(1), 0, begins_epoch=True, now_ms=100) is not None


def test_a_later_epoch_that_may_be_let_in_yet_keeps_its_place() -> None:
    verifications = Verifications()
    verification = question(verifications, epoch=2).verification
    verifications.settle(verification, VerificationRefused(ErrorCode.NOT_ENOUGH_REPLICAS, "ask again"))
    assert verification.state == Unverified()
    assert verifications.begin(producer(1), 0, begins_epoch=True, now_ms=100) is None


def test_nobody_overtakes_a_batch_whose_verification_has_to_be_tried_again() -> None:
    verifications = Verifications()
    answered(verifications, ErrorCode.NOT_COORDINATOR, sequence=0)
    answered(verifications, ErrorCode.NONE, sequence=4)
    assert refused(verifications, header(4)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    verifications.check(header(0), is_known=True)


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
    refusal = question(Verifications(), adds=adds, knows_abortable=knows_abortable).settle(answer)
    assert isinstance(refusal, VerificationRefused)
    assert refusal.code is expected


def test_only_the_end_of_the_transaction_before_is_worth_asking_again_and_not_for_ever() -> None:
    asked = question(Verifications())
    assert asked.is_repeated(ErrorCode.CONCURRENT_TRANSACTIONS, 0.0)
    assert not asked.is_repeated(ErrorCode.CONCURRENT_TRANSACTIONS, VERIFICATION_PATIENCE_SECONDS)
    assert not asked.is_repeated(ErrorCode.NOT_COORDINATOR, 0.0)
    assert not asked.is_repeated(ErrorCode.NONE, 0.0)


@pytest.mark.parametrize("adds", [True, False])
def test_an_epoch_of_its_own_begins_at_sequence_0(adds: bool) -> None:
    verifications = Verifications()
    question(verifications, sequence=3, adds=adds).settle(ErrorCode.NONE)
    verifications.check(header(3), is_known=True)
    if adds:
        assert refused(verifications, header(3), is_known=False) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    else:
        verifications.check(header(3), is_known=False)


def test_a_fenced_producer_disturbs_nobody() -> None:
    verifications = Verifications()
    answered(verifications, ErrorCode.NONE, epoch=1)
    assert verifications.begin(producer(0), 0, begins_epoch=False, now_ms=100) is None
    assert refused(verifications, header(epoch=0)) is ErrorCode.INVALID_PRODUCER_EPOCH
    verifications.check(header(epoch=1), is_known=True)
    answered(verifications, ErrorCode.NONE, epoch=2, sequence=9)
    verifications.check(header(9, epoch=2), is_known=True)
    assert refused(verifications, header(epoch=1)) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_those_that_nobody_comes_back_to_are_forgotten() -> None:
    verifications = Verifications()
    answered(verifications, ErrorCode.NONE)
    verifications.expire(100)
    verifications.check(header(), is_known=True)
    verifications.expire(101)
    assert refused(verifications, header()) is ErrorCode.INVALID_TXN_STATE


def test_there_are_never_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PRODUCERS_PER_PARTITION_MAX", 2)
    verifications = Verifications()
    for number in (7, 8, 9):
        other = ProducerIdentity(ProducerId(number), ProducerEpoch(0))
        begun = verifications.begin(other, 0, begins_epoch=False, now_ms=0)
        assert begun is not None
        verifications.settle(begun, Verified())
    assert refused(verifications, header()) is ErrorCode.INVALID_TXN_STATE
    verifications.check(header()._replace(producer_id=ProducerId(9)), is_known=True)
