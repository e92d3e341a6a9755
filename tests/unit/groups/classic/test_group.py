"""A classic group: votes, leaders, who is who."""

import pytest

from riverlog.groups.classic.group import ClassicGroup, ClassicMember, ClassicPhase
from riverlog.groups.commands import MemberClient, Protocol
from riverlog.groups.effects import GroupEffects
from riverlog.groups.records import GroupMetadataValue
from riverlog.model.errors import ErrorCode
from riverlog.model.machine import Instant, Moment
from riverlog.model.timers import Timers
from tests.support.groups import subscription

CLIENT = MemberClient("c", "/h")


def effects() -> GroupEffects:
    return GroupEffects(Moment(Instant(1.0), 1_000), Timers())


def member(name: str, *protocols: str, instance: str | None = None) -> ClassicMember:
    offered = tuple(Protocol(each, subscription(f"{name}-{each}")) for each in protocols or ("range",))
    return ClassicMember(name, instance, CLIENT, 10_000, 60_000, offered)


def group_of(*members: ClassicMember) -> ClassicGroup:
    group = ClassicGroup("g", ClassicPhase.STABLE, 5, 3, "consumer", "range")
    for each in members:
        group.add(each)
    return group


def test_a_group_and_its_record_say_the_same() -> None:
    group = group_of(member("a"), member("b", instance="i"))
    group.members["a"].assignment = b"x"
    group.subscribed = group.read_subscriptions()
    copy = ClassicGroup.from_record("g", group.record())
    assert copy == group
    assert copy.record() == group.record()


def test_an_old_record_without_a_rebalance_time_out_means_the_session_time_out() -> None:
    record = group_of(member("a")).record()
    record.members[0].rebalance_timeout = -1
    assert ClassicGroup.from_record("g", record).members["a"].rebalance_timeout_ms == 10_000


def test_an_empty_record_is_an_empty_group() -> None:
    assert ClassicGroup.from_record("g", GroupMetadataValue(generation=4)) == ClassicGroup(
        "g", ClassicPhase.EMPTY, generation=4
    )


@pytest.mark.parametrize(
    ("offers", "chosen"),
    [
        ([["a", "b"], ["a", "b"]], "a"),
        ([["a", "b"], ["b", "a"], ["b", "a"]], "b"),
        ([["a", "b"], ["a", "b"], ["b"]], "b"),
        ([["a", "b", "c"], ["c", "b"], ["b", "c", "a"]], "b"),
    ],
)
def test_members_vote_among_what_all_of_them_offer(offers: list[list[str]], chosen: str) -> None:
    group = group_of(*(member(f"m{number}", *offer) for number, offer in enumerate(offers)))
    assert group.chosen_protocol() == chosen


def test_a_newcomer_must_fit() -> None:
    group = group_of(member("a", "range", "sticky"), member("b", "sticky"))
    assert group.supports("consumer", (Protocol("sticky", b""), Protocol("other", b"")))
    assert not group.supports("consumer", (Protocol("range", b""),))
    assert not group.supports("connect", (Protocol("sticky", b""),))
    assert not group.supports("consumer", ())
    group.update(group.members["b"], (Protocol("range", b""),))
    assert group.supports("consumer", (Protocol("range", b""),))
    assert set(group.supporters) == {"range", "sticky"}
    group.update(group.members["a"], (Protocol("range", b""),))
    assert set(group.supporters) == {"range"}


def test_a_protocol_that_is_offered_twice_counts_once() -> None:
    group = group_of(member("a", "range", "range"), member("b", "range"))
    assert group.chosen_protocol() == "range"
    group.remove("a", effects())
    assert group.chosen_protocol() == "range"


def test_an_empty_group_takes_any_type_but_none() -> None:
    group = ClassicGroup("g", protocol_type="consumer")
    assert group.supports("connect", (Protocol("x", b""),))
    assert not group.supports("", (Protocol("x", b""),))
    assert not group.supports("connect", ())


def test_the_first_member_leads_and_the_next_one_follows_it() -> None:
    group = group_of(member("a"), member("b"))
    group.unsynced = {"a", "b"}
    assert group.leader == "a"
    group.remove("a", effects())
    assert group.unsynced == {"b"}
    assert group.leader == "b"
    group.remove("b", effects())
    assert group.leader is None
    assert not group.supporters


def test_a_static_member_keeps_its_place_under_a_new_id() -> None:
    group = group_of(member("a", instance="i"), member("b"))
    group.members["a"].assignment = b"x"
    assert group.replace("a", "a2", effects()).assignment == b"x"
    assert group.leader == "a2"
    assert group.static_ids == {"i": "a2"}
    assert set(group.members) == {"a2", "b"}


@pytest.mark.parametrize(
    ("member_id", "instance_id", "code"),
    [
        ("a", None, ErrorCode.NONE),
        ("s", "i", ErrorCode.NONE),
        ("s", None, ErrorCode.NONE),
        ("x", None, ErrorCode.UNKNOWN_MEMBER_ID),
        ("a", "unknown", ErrorCode.UNKNOWN_MEMBER_ID),
        ("a", "i", ErrorCode.FENCED_INSTANCE_ID),
        ("x", "i", ErrorCode.FENCED_INSTANCE_ID),
    ],
)
def test_who_is_who(member_id: str, instance_id: str | None, code: ErrorCode) -> None:
    group = group_of(member("a"), member("s", instance="i"))
    assert group.member_refusal(member_id, instance_id) is code
    assert group.generation_refusal(member_id, instance_id, 3) is code
    stale = ErrorCode.ILLEGAL_GENERATION if code is ErrorCode.NONE else code
    assert group.generation_refusal(member_id, instance_id, 2) is stale


def test_what_a_group_reads() -> None:
    group = group_of(member("a"), member("b"))
    group.subscribed = group.read_subscriptions()
    assert group.reads("a-range")
    assert not group.reads("c-range")
    group.add(ClassicMember("c", None, CLIENT, 1, 1, (Protocol("range", b"?"),)))
    group.subscribed = group.read_subscriptions()
    assert group.reads("anything"), "a consumer that cannot be understood might read it"
    group.protocol_type = "connect"
    assert group.read_subscriptions() is None
    assert not group.reads("anything")
