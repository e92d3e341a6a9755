"""How a classic group gets from one generation to the next, and what happens when time runs out."""

from riverlog.groups.commands import Announce, Heartbeat, Leave, Leaver
from riverlog.groups.limits import (
    EXPECTED_MEMBERS_WAIT_MS,
    EXPECTED_MEMBERS_WAIT_MS_MAX,
    JOIN_EXTENSION_MS_MIN,
    NEW_MEMBER_JOIN_MS_MAX,
    STRAGGLERS_WAIT_MS,
)
from riverlog.model.errors import ErrorCode
from tests.support.groups import Coordinator, settings_of

SHORT = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 60_000}


def test_a_first_round_waits_for_more_members() -> None:
    coordinator = Coordinator(settings_of(group_initial_rebalance_delay_ms=3_000))
    _, first = coordinator.enter(**SHORT)
    coordinator.pass_time(2.9)
    _, second = coordinator.enter(**SHORT)
    assert coordinator.waits(first)
    coordinator.pass_time(0.2)
    assert coordinator.waits(first), "somebody came, so it waits once more"
    coordinator.pass_time(3)
    assert coordinator.answers[first].generation_id == coordinator.answers[second].generation_id == 1
    assert len(coordinator.answers[first].members) == 2


def test_a_first_round_does_not_wait_for_ever() -> None:
    coordinator = Coordinator(settings_of(group_initial_rebalance_delay_ms=3_000))
    first = coordinator.enter(session_timeout_ms=10_000, rebalance_timeout_ms=8_000)[1]
    for _ in range(4):
        assert coordinator.waits(first)
        coordinator.enter(session_timeout_ms=10_000, rebalance_timeout_ms=8_000)
        coordinator.pass_time(2)
    assert not coordinator.waits(first)


def test_newcomers_that_never_come_back_do_not_hold_up_a_first_round() -> None:
    coordinator = Coordinator(settings_of(group_initial_rebalance_delay_ms=3_000))
    _, ticket = coordinator.enter(**SHORT)
    coordinator.join(**SHORT)
    coordinator.pass_time(3)
    assert coordinator.answers[ticket].generation_id == 1


def test_everybody_leaving_during_the_first_round_leaves_an_empty_group() -> None:
    coordinator = Coordinator(settings_of(group_initial_rebalance_delay_ms=3_000))
    member_id, _ = coordinator.enter()
    coordinator.ask(Leave("g", (Leaver(member_id),)))
    coordinator.pass_time(3)
    assert coordinator.machine.soft.groups == {}
    assert coordinator.machine.state.classic["g"].members == ()


def test_members_that_do_not_rejoin_in_time_are_left_behind() -> None:
    coordinator = Coordinator()
    leader, follower = coordinator.stable(2, session_timeout_ms=100_000, rebalance_timeout_ms=30_000)
    ticket = coordinator.join(member_id=leader.member_id)
    coordinator.pass_time(29)
    assert coordinator.waits(ticket)
    coordinator.pass_time(300)
    assert [each.member_id for each in coordinator.answers[ticket].members] == [leader.member_id]
    assert coordinator.beat(follower) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_leader_that_does_not_rejoin_is_replaced() -> None:
    coordinator = Coordinator()
    leader, follower = coordinator.stable(2, session_timeout_ms=100_000, rebalance_timeout_ms=30_000)
    _, ticket = coordinator.enter()
    coordinator.join(member_id=follower.member_id)
    coordinator.pass_time(301)
    assert coordinator.answers[ticket].leader != leader.member_id
    assert coordinator.answers[ticket].generation_id == 3


def test_a_member_that_falls_silent_is_removed_and_the_rest_rebalances() -> None:
    coordinator = Coordinator()
    leader, follower = coordinator.stable(2, **SHORT)
    coordinator.pass_time(6)
    coordinator.beat(leader)
    coordinator.pass_time(6)
    assert coordinator.beat(leader) is ErrorCode.REBALANCE_IN_PROGRESS
    assert coordinator.beat(follower) is ErrorCode.UNKNOWN_MEMBER_ID
    assert coordinator.answers[coordinator.join(member_id=leader.member_id)].generation_id == 3


def test_a_member_that_waits_for_us_is_not_silent() -> None:
    coordinator = Coordinator()
    leader, follower = coordinator.stable(2, **SHORT)
    ticket = coordinator.join(member_id=leader.member_id, **SHORT)
    for _ in range(8):
        coordinator.pass_time(6)
        assert coordinator.beat(follower) is ErrorCode.REBALANCE_IN_PROGRESS
    assert coordinator.waits(ticket)
    coordinator.join(member_id=follower.member_id, **SHORT)
    joined = coordinator.answers[ticket]
    assert joined.generation_id == 3
    coordinator.pass_time(9)
    assert coordinator.beat(joined) is ErrorCode.NONE, "the answer began its session anew"


def test_a_new_member_that_waits_too_long_is_forgotten() -> None:
    coordinator = Coordinator()
    patient = {"session_timeout_ms": 1_800_000, "rebalance_timeout_ms": 1_800_000}
    member = coordinator.stable(**patient)[0]
    newcomer, ticket = coordinator.enter(**patient)
    coordinator.pass_time(NEW_MEMBER_JOIN_MS_MAX / 1000 - 1)
    assert coordinator.waits(ticket)
    coordinator.pass_time(1)
    assert coordinator.answers[ticket].code is ErrorCode.UNKNOWN_MEMBER_ID
    assert coordinator.ask(Heartbeat("g", newcomer, 1)) is ErrorCode.UNKNOWN_MEMBER_ID
    assert coordinator.beat(member) is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_handed_out_id_expires() -> None:
    coordinator = Coordinator()
    handed_out = coordinator.answers[coordinator.join(**SHORT)].member_id
    coordinator.pass_time(10)
    assert coordinator.machine.soft.groups == {}
    assert coordinator.answers[coordinator.join(member_id=handed_out)].code is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_rebalance_waits_for_newcomers_that_have_an_id() -> None:
    coordinator = Coordinator()
    member = coordinator.stable(**SHORT)[0]
    coordinator.join(**SHORT)
    ticket = coordinator.join(member_id=member.member_id, **SHORT)
    assert coordinator.waits(ticket)
    coordinator.pass_time(10)
    assert coordinator.answers[ticket].generation_id == 2


def test_a_member_that_never_syncs_is_removed() -> None:
    coordinator = Coordinator()
    long = {"session_timeout_ms": 100_000, "rebalance_timeout_ms": 30_000}
    leader, follower = coordinator.stable(2, **long)
    tickets = [coordinator.join(member_id=each.member_id, **long) for each in (leader, follower)]
    joined = coordinator.answers[tickets[0]]
    coordinator.sync(joined)
    assert coordinator.phase == "Stable"
    coordinator.pass_time(30)
    assert coordinator.phase == "PreparingRebalance"
    assert coordinator.beat(follower) is ErrorCode.UNKNOWN_MEMBER_ID
    assert coordinator.beat(joined) is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_leader_that_never_assigns_is_removed() -> None:
    coordinator = Coordinator()
    long = {"session_timeout_ms": 100_000, "rebalance_timeout_ms": 30_000}
    leader, follower = coordinator.stable(2, **long)
    tickets = [coordinator.join(member_id=each.member_id, **long) for each in (leader, follower)]
    syncing = coordinator.sync(coordinator.answers[tickets[1]])
    coordinator.pass_time(30)
    assert coordinator.answers[syncing].code is ErrorCode.REBALANCE_IN_PROGRESS
    joined = coordinator.answers[coordinator.join(member_id=follower.member_id, **long)]
    assert (joined.generation_id, joined.leader) == (4, follower.member_id)


def test_a_rebalance_cancels_syncs() -> None:
    coordinator = Coordinator()
    leader, follower = coordinator.stable(2)
    tickets = [coordinator.join(member_id=each.member_id) for each in (leader, follower)]
    syncing = coordinator.sync(coordinator.answers[tickets[1]])
    coordinator.enter()
    assert coordinator.answers[syncing].code is ErrorCode.REBALANCE_IN_PROGRESS


def test_static_members_keep_their_place_through_a_rebalance() -> None:
    coordinator = Coordinator()
    long = {"session_timeout_ms": 200_000, "rebalance_timeout_ms": 30_000}
    away = coordinator.answers[coordinator.join(group_instance_id="away", **long)]
    coordinator.assign([away])
    _, ticket = coordinator.enter(**long)
    coordinator.pass_time(31)
    joined = coordinator.answers[ticket]
    assert joined.leader == joined.member_id, "somebody who is there must lead"
    assert {each.group_instance_id for each in joined.members} == {"away", None}
    coordinator.pass_time(300)
    assert coordinator.phase != "Stable", "but a session ends for everybody"


def test_nobody_rejoining_is_no_reason_to_hurry() -> None:
    coordinator = Coordinator()
    hasty = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 0}
    static = coordinator.answers[coordinator.join(group_instance_id="a", **hasty)]
    coordinator.assign([static])
    newcomer, _ = coordinator.enter(**hasty)
    coordinator.ask(Leave("g", (Leaver(newcomer),)))
    asked = coordinator.asked
    coordinator.pass_time(9)
    assert coordinator.asked - asked < 9 * 1000 / JOIN_EXTENSION_MS_MIN + 5
    coordinator.pass_time(2)
    assert coordinator.machine.state.classic["g"].members == ()


def test_sessions_begin_anew_with_each_generation() -> None:
    coordinator = Coordinator()
    patient = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 100_000}
    leader, follower = coordinator.stable(2, **patient)
    coordinator.join(member_id=leader.member_id, **patient)
    for _ in range(3):
        coordinator.pass_time(6)
        coordinator.beat(follower)
    coordinator.join(member_id=follower.member_id, **patient)
    coordinator.pass_time(9)
    assert coordinator.phase == "CompletingRebalance"
    coordinator.pass_time(1)
    assert coordinator.machine.soft.groups == {}


def test_sessions_begin_anew_with_an_assignment() -> None:
    coordinator = Coordinator()
    patient = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 100_000}
    leader, follower = coordinator.stable(2, **patient)
    tickets = [coordinator.join(member_id=each.member_id, **patient) for each in (leader, follower)]
    joined = coordinator.answers[tickets[0]]
    coordinator.sync(coordinator.answers[tickets[1]])
    for _ in range(3):
        coordinator.pass_time(6)
        coordinator.beat(joined)
    coordinator.sync(joined)
    for _ in range(2):
        assert coordinator.phase == "Stable"
        coordinator.pass_time(6)
        coordinator.beat(joined)
    assert coordinator.phase == "PreparingRebalance", "the follower is silent"


def test_many_members_cost_little() -> None:
    coordinator = Coordinator()
    members = coordinator.stable(200, **SHORT)
    heap = len(coordinator.machine.soft.timers._heap)
    for _ in range(20):
        for member in members:
            assert coordinator.beat(member) is ErrorCode.NONE
        coordinator.pass_time(1)
    assert len(coordinator.machine.soft.timers._heap) <= heap


def announced(coordinator: Coordinator, *connections: str) -> None:
    for connection in connections:
        coordinator.ask(Announce("g", connection))


def test_the_first_member_waits_for_others_that_asked_for_the_coordinator_with_it() -> None:
    coordinator = Coordinator()
    announced(coordinator, "a", "b")
    _, first = coordinator.enter(**SHORT)
    assert coordinator.waits(first)
    _, second = coordinator.enter(**SHORT)
    coordinator.pass_time(STRAGGLERS_WAIT_MS / 1000)
    assert coordinator.answers[first].generation_id == coordinator.answers[second].generation_id == 1


def test_one_more_than_were_expected_finds_a_place_in_the_first_generation() -> None:
    coordinator = Coordinator()
    announced(coordinator, "a", "b")
    _, first = coordinator.enter(**SHORT)
    coordinator.enter(**SHORT)
    coordinator.pass_time(STRAGGLERS_WAIT_MS / 2000)
    coordinator.enter(**SHORT)
    coordinator.pass_time(STRAGGLERS_WAIT_MS / 1000)
    assert len(coordinator.answers[first].members) == 3


def test_a_first_member_that_asked_alone_does_not_wait() -> None:
    coordinator = Coordinator()
    announced(coordinator, "a", "a")
    assert coordinator.answers[coordinator.enter(**SHORT)[1]].generation_id == 1


def test_one_who_asked_but_does_not_come_holds_up_the_first_round_for_a_moment_only() -> None:
    coordinator = Coordinator()
    announced(coordinator, "a", "tool")
    _, first = coordinator.enter(**SHORT)
    coordinator.pass_time(EXPECTED_MEMBERS_WAIT_MS / 1000)
    assert coordinator.answers[first].generation_id == 1


def test_members_that_keep_coming_do_not_hold_up_the_first_round_for_ever() -> None:
    coordinator = Coordinator()
    announced(coordinator, "a", "b")
    _, first = coordinator.enter(**SHORT)
    for _ in range(EXPECTED_MEMBERS_WAIT_MS_MAX // 100 - 1):
        coordinator.pass_time(0.1)
        announced(coordinator, *(str(number) for number in range(100)))
        coordinator.enter(**SHORT)
        assert coordinator.waits(first)
    coordinator.pass_time(0.11)
    assert not coordinator.waits(first)


def test_a_group_that_has_members_waits_for_them_and_for_nobody_who_only_asked() -> None:
    coordinator = Coordinator()
    (leader,) = coordinator.stable(1)
    announced(coordinator, "a", "b", "c")
    _, newcomer = coordinator.enter()
    coordinator.join(member_id=leader.member_id)
    assert coordinator.answers[newcomer].generation_id == 2
