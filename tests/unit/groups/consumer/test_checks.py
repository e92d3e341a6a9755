"""What members may say; whole heartbeats are refused in test_consumer.py."""

from dataclasses import replace

import pytest

from riverlog.groups.consumer.checks import check_epoch, checked_holder
from riverlog.groups.consumer.group import ConsumerMember, ConsumerMemberState
from riverlog.model.errors import ErrorCode, Refusal
from tests.support.shapes import topic_id

ORDERS = topic_id("orders")
MEMBER = ConsumerMember("m", epoch=5, previous_epoch=3, assigned={ORDERS: {0: 3, 1: 5}})


@pytest.mark.parametrize(
    ("epoch", "reported"),
    [
        (5, None),
        (5, {ORDERS: frozenset({7})}),
        (3, None),
        (3, {}),
        (3, {ORDERS: frozenset({0, 1})}),
    ],
)
def test_a_member_is_in_its_epoch_or_missed_the_answer_that_began_it(epoch: int, reported: dict | None) -> None:
    check_epoch(MEMBER, epoch, reported)


@pytest.mark.parametrize(
    ("epoch", "reported"),
    [(6, None), (4, None), (2, {}), (3, {ORDERS: frozenset({2})}), (3, {topic_id("other"): frozenset({0})})],
)
def test_any_other_member_is_fenced(epoch: int, reported: dict | None) -> None:
    with pytest.raises(Refusal) as refused:
        check_epoch(MEMBER, epoch, reported)
    assert refused.value.code is ErrorCode.FENCED_MEMBER_EPOCH


@pytest.mark.parametrize("reported", [None, {ORDERS: frozenset({0})}])
def test_a_state_that_only_others_know_ends_in_joining_again(reported: dict | None) -> None:
    with pytest.raises(Refusal) as refused:
        check_epoch(replace(MEMBER, state=ConsumerMemberState(99)), 5, reported)
    assert refused.value.code is ErrorCode.FENCED_MEMBER_EPOCH


def test_an_instance_belongs_to_one_member() -> None:
    assert checked_holder(MEMBER, "m", "i") is MEMBER
    with pytest.raises(Refusal) as fenced:
        checked_holder(MEMBER, "x", "i")
    assert fenced.value.code is ErrorCode.FENCED_INSTANCE_ID
    with pytest.raises(Refusal) as unknown:
        checked_holder(None, "x", "i")
    assert unknown.value.code is ErrorCode.UNKNOWN_MEMBER_ID
