"""A member's steps towards its target, one by one."""

from riverlog.groups.consumer.assignors.subscriber import Partitions
from riverlog.groups.consumer.group import ConsumerMember, ConsumerMemberState, Owned
from riverlog.groups.consumer.reconciliation import reconciled
from tests.support.shapes import topic_id

ORDERS, PAYMENTS = topic_id("orders"), topic_id("payments")
BOTH = frozenset({ORDERS, PAYMENTS})


def some(*indexes: int) -> Partitions:
    return {ORDERS: frozenset(indexes)} if indexes else {}


def since(epoch: int, *indexes: int) -> Owned:
    return {ORDERS: dict.fromkeys(indexes, epoch)} if indexes else {}


def step(
    member: ConsumerMember,
    target: Partitions,
    epoch: int,
    *,
    reported: Partitions | None = None,
    others: tuple[int, ...] = (),
    subscribed: frozenset = BOTH,
) -> ConsumerMember:
    owners = {(ORDERS, index): "other" for index in others}
    owners |= {
        (topic, index): "m" for owned in (member.assigned, member.revoking) for topic in owned for index in owned[topic]
    }
    return reconciled(
        member, target=target, target_epoch=epoch, subscribed=subscribed, reported=reported, owners=owners
    )


def test_a_newcomer_takes_what_is_free() -> None:
    member = step(ConsumerMember("m"), some(0, 1), 1)
    assert member == ConsumerMember("m", epoch=1, previous_epoch=0, assigned=since(1, 0, 1))


def test_a_newcomer_waits_for_what_others_have_and_gets_it_later() -> None:
    waiting = step(ConsumerMember("m"), some(0, 1), 1, others=(1,))
    assert waiting == ConsumerMember("m", epoch=1, state=ConsumerMemberState.UNRELEASED, assigned=since(1, 0))
    assert step(waiting, some(0, 1), 1, others=(1,)) == waiting
    assert step(waiting, some(0, 1), 1) == ConsumerMember("m", epoch=1, assigned=since(1, 0, 1))


def test_giving_up_comes_first_and_silence_means_not_yet() -> None:
    stable = ConsumerMember("m", epoch=1, assigned=since(1, 0, 1))
    asked = step(stable, some(1, 2), 2, reported=None)
    assert asked == ConsumerMember(
        "m", epoch=1, state=ConsumerMemberState.UNREVOKED, assigned=since(1, 1), revoking=since(1, 0)
    )
    assert step(asked, some(1, 2), 2, reported=None) is asked
    assert step(asked, some(1, 2), 2, reported=some(0, 1)) is asked
    done = step(asked, some(1, 2), 2, reported=some(1))
    assert done == ConsumerMember("m", epoch=2, previous_epoch=1, assigned={ORDERS: {1: 1, 2: 2}})


def test_what_the_member_says_it_does_not_have_need_not_be_given_up() -> None:
    returned = ConsumerMember("m", epoch=0, assigned=since(1, 0, 1))
    assert step(returned, some(1), 2, reported={}) == ConsumerMember("m", epoch=2, assigned=since(1, 1))


def test_a_target_that_changes_its_mind_returns_a_partition_after_it_was_given_up() -> None:
    asked = ConsumerMember(
        "m", epoch=1, state=ConsumerMemberState.UNREVOKED, assigned=since(1, 1), revoking=since(1, 0)
    )
    back = step(asked, some(0, 1), 3, reported=some(1))
    assert back == ConsumerMember("m", epoch=3, previous_epoch=1, assigned={ORDERS: {0: 3, 1: 1}})


def test_a_topic_no_longer_wanted_is_given_up_before_the_target_knows() -> None:
    stable = ConsumerMember("m", epoch=2, assigned={ORDERS: {0: 2}, PAYMENTS: {0: 2}})
    target = {ORDERS: frozenset({0}), PAYMENTS: frozenset({0})}
    asked = step(stable, target, 2, subscribed=frozenset({ORDERS}))
    assert asked == ConsumerMember(
        "m", epoch=2, state=ConsumerMemberState.UNREVOKED, assigned=since(2, 0), revoking={PAYMENTS: {0: 2}}
    )
    more = step(asked, target, 2, subscribed=frozenset())
    assert (more.assigned, more.revoking) == ({}, {ORDERS: {0: 2}, PAYMENTS: {0: 2}})


def test_the_previous_epoch_is_that_of_the_last_change() -> None:
    member = ConsumerMember("m", epoch=3, previous_epoch=2, state=ConsumerMemberState.UNRELEASED)
    assert step(member, some(0), 3).previous_epoch == 2
    assert step(member, some(0), 4).previous_epoch == 3


def test_a_state_that_only_others_know_is_left_behind() -> None:
    strange = ConsumerMember("m", epoch=3, state=ConsumerMemberState(99), assigned=since(3, 0))
    assert step(strange, some(0), 3, reported={}).state is ConsumerMemberState.STABLE
