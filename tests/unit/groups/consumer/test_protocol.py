"""The consumer protocol: joining, staying, giving up, leaving, and every way of being refused."""

from typing import Any
from uuid import UUID

import pytest

from riverlog.groups.commands import ConsumerHeartbeatReply
from riverlog.model.errors import ErrorCode
from tests.support.consumers import ConsumerCoordinator, at_once, named
from tests.support.shapes import topic_id

ORDERS = topic_id("orders")


def test_the_first_member_gets_everything_with_its_first_heartbeat() -> None:
    alice = ConsumerCoordinator().consumer("a")
    reply = alice.beat()
    assert reply == ConsumerHeartbeatReply(
        member_id="a", member_epoch=1, heartbeat_interval_ms=500, assignment={ORDERS: frozenset({0, 1, 2, 3})}
    )


def test_the_first_member_has_an_epoch_even_if_it_wants_nothing_yet() -> None:
    alice = ConsumerCoordinator().consumer("a")
    nothing = {"subscribed_topic_names": frozenset()}
    assert alice.beat(**nothing).member_epoch == 1, "in epoch 0 its next heartbeat would be another way of joining"
    assert alice.beat(**nothing).member_epoch == 1
    assert named(alice.beat().assignment) == {"orders": [0, 1, 2, 3]}
    assert alice.epoch == 2


def test_a_heartbeat_that_says_nothing_new_is_answered_with_nothing_new_and_writes_nothing() -> None:
    coordinator = ConsumerCoordinator()
    alice = coordinator.consumer("a")
    alice.beat()
    alice.beat()
    written = len(coordinator.log)
    silent = {"topic_partitions": None, "subscribed_topic_names": None, "rebalance_timeout_ms": -1}
    assert alice.beat(**silent).assignment is None
    assert named(alice.beat().assignment) == {"orders": [0, 1, 2, 3]}
    assert len(coordinator.log) == written


def test_a_second_member_waits_until_the_first_has_let_go() -> None:
    coordinator = ConsumerCoordinator()
    alice, bob = coordinator.consumer("a"), coordinator.consumer("b")
    alice.beat()
    assert named(bob.beat().assignment) == {}
    assert coordinator.group.phase == "Reconciling"
    assert named(alice.beat(topic_partitions=None).assignment) == {"orders": [0, 1]}
    assert alice.epoch == 1, "it has not said yet that it gave anything up"
    assert named(bob.beat().assignment) == {}
    assert alice.beat().member_epoch == 2
    assert named(bob.beat().assignment) == {"orders": [2, 3]}
    assert coordinator.group.phase == "Stable"


def test_nobody_waits_for_members_that_have_nothing_to_give() -> None:
    coordinator = ConsumerCoordinator()
    members = [coordinator.consumer(each) for each in "abc"]
    coordinator.settle(*members)
    dave = coordinator.consumer("d")
    dave.beat()
    giver = next(each for each in members if sum(map(len, each.has.values())) == 2)
    giver.beat(), giver.beat()
    assert len(dave.beat().assignment or {}) == 1, "the other two were not heard of"


def test_a_member_that_leaves_frees_its_partitions_at_once() -> None:
    coordinator = ConsumerCoordinator()
    alice, bob = coordinator.consumer("a"), coordinator.consumer("b")
    coordinator.settle(alice, bob)
    assert bob.leave() == ConsumerHeartbeatReply(member_id="b", member_epoch=-1)
    assert named(alice.beat().assignment) == {"orders": [0, 1, 2, 3]}
    alice.leave()
    assert coordinator.group.phase == "Empty"
    assert coordinator.machine.soft.consumers == {}


def test_a_silent_member_makes_the_others_look_out_and_loses_its_place_with_its_session() -> None:
    coordinator = ConsumerCoordinator()
    alice, bob = coordinator.consumer("a"), coordinator.consumer("b")
    coordinator.settle(alice, bob)
    for _ in range(2):
        coordinator.pass_time(5)
        assert {alice.beat().heartbeat_interval_ms, bob.beat().heartbeat_interval_ms} == {5_000}
    for _ in range(8):
        coordinator.pass_time(5)
        alice.beat()
    assert alice.interval_ms == 500, "bob was not heard of"
    assert alice.reads == {"orders": [0, 1]}
    coordinator.pass_time(5)
    alice.beat()
    assert alice.reads == {"orders": [0, 1, 2, 3]}
    assert bob.beat().code is ErrorCode.UNKNOWN_MEMBER_ID
    coordinator.settle(alice, bob)
    for member in (alice, bob):
        coordinator.pass_time(5)
        assert member.beat().heartbeat_interval_ms == 5_000


def test_a_silent_member_that_comes_back_in_time_keeps_its_place() -> None:
    coordinator = ConsumerCoordinator()
    alice = coordinator.consumer("a")
    alice.beat()
    for _ in range(3):
        coordinator.pass_time(44)
        assert alice.beat().code is ErrorCode.NONE
    coordinator.pass_time(46)
    assert alice.beat().code is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_does_not_give_up_in_time_is_fenced() -> None:
    coordinator = ConsumerCoordinator()
    alice, bob = coordinator.consumer("a"), coordinator.consumer("b")
    alice.beat(rebalance_timeout_ms=60_000)
    bob.beat()
    for _ in range(7):
        assert alice.beat(topic_partitions=None, rebalance_timeout_ms=-1).code is ErrorCode.NONE
        assert alice.epoch == 1
        coordinator.pass_time(9)
        bob.beat()
    assert alice.beat().code is ErrorCode.UNKNOWN_MEMBER_ID
    assert bob.reads == {"orders": [0, 1, 2, 3]}


def test_an_answer_that_was_lost_is_given_again() -> None:
    coordinator = ConsumerCoordinator()
    alice = coordinator.consumer("a")
    alice.beat(answer_is_lost=True)
    assert alice.epoch == 0
    assert named(alice.beat().assignment) == {"orders": [0, 1, 2, 3]}
    coordinator.change_topics(orders=6)
    alice.beat(answer_is_lost=True)
    assert alice.epoch == 1
    assert named(alice.beat().assignment) == {"orders": [0, 1, 2, 3, 4, 5]}
    assert alice.epoch == 2


def test_an_answer_that_was_lost_with_the_coordinator_is_given_by_the_next_one() -> None:
    coordinator = ConsumerCoordinator()
    alice = coordinator.consumer("a")
    coordinator.settle(alice)
    coordinator.change_topics(orders=0)
    coordinator.pass_time(5)
    assert alice.beat(answer_is_lost=True, topic_partitions=None, rebalance_timeout_ms=-1).code is ErrorCode.NONE
    assert alice.reads == {"orders": [0, 1, 2, 3]}
    coordinator.fail_over()
    alice.beat(topic_partitions=None, rebalance_timeout_ms=-1)
    assert alice.reads == {}
    coordinator.settle(alice)


def test_a_member_in_another_epoch_is_fenced() -> None:
    coordinator = ConsumerCoordinator()
    alice, bob = coordinator.consumer("a"), coordinator.consumer("b")
    coordinator.settle(alice, bob)
    assert alice.beat(member_epoch=3).code is ErrorCode.FENCED_MEMBER_EPOCH
    coordinator.settle(alice, bob)
    assert alice.beat(member_epoch=1, topic_partitions={ORDERS: frozenset({3})}).code is ErrorCode.FENCED_MEMBER_EPOCH
    coordinator.settle(alice, bob)
    assert alice.beat(member_epoch=1, topic_partitions=None).member_epoch == 2, "the answer may have been lost"


def test_several_changes_within_the_interval_share_one_assignment() -> None:
    coordinator = ConsumerCoordinator(at_once(group_consumer_assignment_interval_ms=200))
    members = [coordinator.consumer(each) for each in "abcd"]
    for member in members:
        member.beat()
    assert (coordinator.group.epoch, coordinator.group.target_epoch) == (4, 1)
    assert coordinator.group.phase == "Assigning"
    coordinator.pass_time(0.2)
    assert (coordinator.group.epoch, coordinator.group.target_epoch) == (4, 4)
    coordinator.settle(*members)
    assert sorted(len(each.has[ORDERS]) for each in members) == [1, 1, 1, 1]


def test_topics_that_come_grow_and_go_are_assigned_anew() -> None:
    coordinator = ConsumerCoordinator(orders=1)
    alice, bob = coordinator.consumer("a", "orders", "returns"), coordinator.consumer("b", "orders", "returns")
    coordinator.settle(alice, bob)
    assert (alice.reads, bob.reads) == ({"orders": [0]}, {})
    epoch = coordinator.group.epoch
    coordinator.change_topics(unrelated=3)
    assert coordinator.group.epoch == epoch
    coordinator.change_topics(returns=2)
    coordinator.settle(alice, bob)
    assert coordinator.group.epoch == epoch + 1
    assert sorted([*alice.reads.get("returns", []), *bob.reads["returns"]]) == [0, 1]
    coordinator.change_topics(orders=2)
    coordinator.settle(alice, bob)
    assert sorted([*alice.reads["orders"], *bob.reads["orders"]]) == [0, 1]
    coordinator.change_topics(returns=0)
    coordinator.settle(alice, bob)
    assert [alice.reads, bob.reads] == [{"orders": [0]}, {"orders": [1]}]


def test_a_pattern_follows_the_topics() -> None:
    coordinator = ConsumerCoordinator(orders=1, other=1)
    alice = coordinator.consumer("a", regex="ord.*")
    alice.topics = None
    alice.beat()
    assert alice.reads == {"orders": [0]}
    coordinator.change_topics(order_lines=1, unrelated=1)
    alice.beat()
    assert alice.reads == {"order_lines": [0], "orders": [0]}
    coordinator.change_topics(orders=0)
    coordinator.settle(alice)
    assert alice.reads == {"order_lines": [0]}
    assert coordinator.group.patterns["ord.*"].topics == ("order_lines",)


def test_a_pattern_that_nobody_uses_is_forgotten() -> None:
    coordinator = ConsumerCoordinator()
    alice, bob = (coordinator.consumer(each, regex="ord.*") for each in "ab")
    alice.topics = bob.topics = ()
    coordinator.settle(alice, bob)
    alice.regex = "pay.*"
    coordinator.settle(alice, bob)
    assert (alice.reads, bob.reads) == ({"payments": [0, 1]}, {"orders": [0, 1, 2, 3]})
    assert coordinator.group.patterns.keys() == {"ord.*", "pay.*"}
    alice.regex, alice.topics = "", ("orders",)
    coordinator.settle(alice, bob)
    assert coordinator.group.patterns.keys() == {"ord.*"}
    bob.leave()
    assert coordinator.group.patterns == {}


def test_names_and_a_pattern_add_up() -> None:
    alice = ConsumerCoordinator().consumer("a", "orders", regex="pay.*")
    alice.beat()
    assert alice.reads == {"orders": [0, 1, 2, 3], "payments": [0, 1]}


def test_a_topic_that_a_member_drops_is_given_up_even_before_the_next_assignment() -> None:
    coordinator = ConsumerCoordinator(at_once(group_consumer_assignment_interval_ms=1_000))
    alice = coordinator.consumer("a", "orders", "payments")
    alice.beat()
    assert alice.reads == {"orders": [0, 1, 2, 3], "payments": [0, 1]}
    alice.topics = ("payments",)
    alice.beat()
    assert alice.reads == {"payments": [0, 1]}
    coordinator.settle(alice)
    assert alice.reads == {"payments": [0, 1]}


def test_the_assignor_that_most_members_ask_for_is_used() -> None:
    coordinator = ConsumerCoordinator(orders=4)
    members = [coordinator.consumer(each, assignor="range") for each in "ab"]
    coordinator.settle(*members)
    assert [each.reads for each in members] == [{"orders": [0, 1]}, {"orders": [2, 3]}]
    others = [coordinator.consumer(each, assignor="uniform") for each in "cd"]
    coordinator.settle(*members, *others)
    assert sorted(len(each.has[ORDERS]) for each in (*members, *others)) == [1, 1, 1, 1]


# ---- static members


def test_a_static_member_that_comes_back_finds_its_partitions_and_disturbs_nobody() -> None:
    coordinator = ConsumerCoordinator()
    alice, bob = coordinator.consumer("a", instance_id="i"), coordinator.consumer("b")
    coordinator.settle(alice, bob)
    bob.beat()
    had, epoch = alice.reads, coordinator.group.epoch
    assert alice.leave(epoch=-2) == ConsumerHeartbeatReply(member_id="a", member_epoch=-2)
    assert bob.beat(topic_partitions=None, subscribed_topic_names=None).assignment is None
    again = coordinator.consumer("a2", instance_id="i")
    again.beat()
    assert (again.reads, again.epoch, coordinator.group.epoch) == (had, epoch, epoch)
    assert alice.beat(member_epoch=epoch).code is ErrorCode.FENCED_INSTANCE_ID


def test_a_static_member_that_does_not_come_back_loses_its_partitions() -> None:
    coordinator = ConsumerCoordinator()
    alice, bob = coordinator.consumer("a", instance_id="i"), coordinator.consumer("b")
    coordinator.settle(alice, bob)
    alice.leave(epoch=-2)
    for _ in range(9):
        coordinator.pass_time(4.9)
        bob.beat()
    assert bob.reads == {"orders": [2, 3]}
    coordinator.pass_time(1)
    bob.beat()
    assert bob.reads == {"orders": [0, 1, 2, 3]}


def test_an_instance_that_is_in_use_is_not_given_away() -> None:
    coordinator = ConsumerCoordinator()
    alice = coordinator.consumer("a", instance_id="i")
    alice.beat()
    assert coordinator.consumer("b", instance_id="i").beat().code is ErrorCode.UNRELEASED_INSTANCE_ID
    assert alice.beat().code is ErrorCode.NONE
    assert alice.leave().code is ErrorCode.NONE
    assert coordinator.consumer("b", instance_id="i").beat().code is ErrorCode.NONE


# ---- fail-over


def test_after_a_fail_over_members_go_on_and_get_a_fresh_session() -> None:
    coordinator = ConsumerCoordinator()
    alice, bob = coordinator.consumer("a"), coordinator.consumer("b")
    coordinator.settle(alice, bob)
    coordinator.pass_time(40)
    coordinator.fail_over()
    coordinator.pass_time(40)
    written = len(coordinator.log)
    assert alice.beat().code is bob.beat().code is ErrorCode.NONE
    assert len(coordinator.log) == written
    coordinator.fail_over()
    coordinator.pass_time(46)
    assert coordinator.group.members == {}


def test_nobody_looks_out_for_one_who_left_for_a_while_also_after_a_fail_over() -> None:
    coordinator = ConsumerCoordinator()
    alice, bob = coordinator.consumer("a", instance_id="i"), coordinator.consumer("b")
    coordinator.settle(alice, bob)
    alice.leave(epoch=-2)
    coordinator.fail_over()
    for _ in range(5):
        bob.beat()
        coordinator.pass_time(5)
    assert coordinator.machine.soft.consumers["g"].silent == set()
    for _ in range(5):
        bob.beat()
        coordinator.pass_time(5)
    assert list(coordinator.group.members) == ["b"]


def test_topics_that_changed_meanwhile_are_noticed_after_a_fail_over() -> None:
    coordinator = ConsumerCoordinator(orders=1)
    alice = coordinator.consumer("a", regex="o.*")
    alice.topics = None
    alice.beat()
    coordinator.topics = type(coordinator.topics).of(orders=2, others=1)
    coordinator.fail_over()
    alice.beat()
    assert alice.reads == {"orders": [0, 1], "others": [0]}


def test_two_sessions_that_end_together_make_one_group_of_the_rest() -> None:
    coordinator = ConsumerCoordinator()
    members = [coordinator.consumer(each) for each in "abc"]
    coordinator.settle(*members)
    alice = members[0]
    for _ in range(4):
        coordinator.pass_time(11)
        alice.beat()
    coordinator.seconds += 3
    coordinator.pass_time(0)
    assert list(coordinator.group.members) == ["a"]
    alice.beat()
    assert alice.reads == {"orders": [0, 1, 2, 3]}
    before = coordinator.machine.state
    coordinator.fail_over()
    assert coordinator.machine.state == before


# ---- refusals


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"group_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"member_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"member_id": "", "brings_its_id": False, "member_epoch": 1}, ErrorCode.INVALID_REQUEST),
        ({"member_id": "", "brings_its_id": False, "member_epoch": -1}, ErrorCode.INVALID_REQUEST),
        ({"instance_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"rack_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"rebalance_timeout_ms": -1}, ErrorCode.INVALID_REQUEST),
        ({"topic_partitions": None}, ErrorCode.INVALID_REQUEST),
        ({"topic_partitions": {ORDERS: frozenset({0})}}, ErrorCode.INVALID_REQUEST),
        ({"subscribed_topic_names": None}, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": -3}, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": -2}, ErrorCode.INVALID_REQUEST),
        ({"server_assignor": "sticky"}, ErrorCode.UNSUPPORTED_ASSIGNOR),
        ({"subscribed_topic_regex": "("}, ErrorCode.INVALID_REGULAR_EXPRESSION),
        ({"member_epoch": 1}, ErrorCode.GROUP_ID_NOT_FOUND),
        ({"member_epoch": -1}, ErrorCode.GROUP_ID_NOT_FOUND),
    ],
)
def test_a_wrong_heartbeat_is_refused_with_one_sentence_and_leaves_nothing(
    wrong: dict[str, Any], code: ErrorCode
) -> None:
    coordinator = ConsumerCoordinator()
    reply = coordinator.consumer("a").beat(**wrong)
    assert reply.code is code
    assert (reply.message or "").endswith(".")
    assert coordinator.log == []
    assert coordinator.machine.soft.consumers == {}


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"instance_id": None, "member_id": "x", "member_epoch": 1}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"instance_id": None, "member_id": "x", "member_epoch": -1}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"instance_id": "x", "member_epoch": 1}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"instance_id": "x", "member_epoch": -2}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"instance_id": "i", "member_id": "x", "member_epoch": -2}, ErrorCode.FENCED_INSTANCE_ID),
        ({"instance_id": "i", "member_id": "x", "member_epoch": 1}, ErrorCode.FENCED_INSTANCE_ID),
        ({"member_epoch": 2}, ErrorCode.FENCED_MEMBER_EPOCH),
    ],
)
def test_whoever_is_not_who_it_says_is_refused(wrong: dict[str, Any], code: ErrorCode) -> None:
    coordinator = ConsumerCoordinator()
    alice = coordinator.consumer("a", instance_id="i")
    alice.beat()
    written = len(coordinator.log)
    assert alice.beat(**wrong).code is code
    assert len(coordinator.log) == written


def test_a_full_group_turns_newcomers_away() -> None:
    coordinator = ConsumerCoordinator(at_once(group_consumer_max_size=1))
    alice = coordinator.consumer("a", instance_id="i")
    alice.beat()
    assert coordinator.consumer("b").beat().code is ErrorCode.GROUP_MAX_SIZE_REACHED
    alice.leave(epoch=-2)
    assert coordinator.consumer("c", instance_id="i").beat().code is ErrorCode.NONE, "it takes its own place"


def test_members_of_version_0_are_given_an_id() -> None:
    reply = ConsumerCoordinator().consumer("").beat(brings_its_id=False)
    assert reply.member_id == str(UUID(int=7))


def test_a_member_that_says_things_only_once_still_hears_what_was_lost() -> None:
    coordinator = ConsumerCoordinator()
    alice, bob = coordinator.consumer("a", is_terse=True), coordinator.consumer("b", is_terse=True)
    alice.beat()
    alice.beat()
    bob.beat()
    alice.beat(answer_is_lost=True)
    assert named(alice.beat().assignment) == {"orders": [0, 1]}, "it has not heard yet what to give up"
    alice.beat(answer_is_lost=True)
    assert alice.beat().member_epoch == 2, "it has not heard of its epoch"
    bob.beat(answer_is_lost=True)
    bob.beat()
    assert bob.reads == {"orders": [2, 3]}, "it has not heard yet what it got"
    bob.beat()
    assert bob.beat().assignment is None, "it has said that it has it"
