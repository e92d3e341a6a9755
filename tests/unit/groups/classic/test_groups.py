"""Classic groups after a fail-over: what is remembered goes on, with fresh sessions."""

from riverlog.model.errors import ErrorCode
from tests.support.groups import Coordinator, settings_of


def test_everybody_goes_on_after_a_fail_over() -> None:
    coordinator = Coordinator()
    leader, follower = coordinator.stable(2)
    before = coordinator.machine.state
    coordinator.fail_over()
    assert coordinator.machine.state == before
    assert coordinator.machine.next_deadline() == 0
    assert coordinator.beat(follower) is ErrorCode.NONE
    assert coordinator.answers[coordinator.sync(leader)].assignment == leader.member_id.encode()


def test_a_rebalance_that_was_under_way_is_forgotten() -> None:
    coordinator = Coordinator()
    leader, follower = coordinator.stable(2)
    coordinator.join(member_id=leader.member_id)
    coordinator.fail_over()
    assert coordinator.beat(follower) is ErrorCode.NONE
    assert coordinator.phase == "Stable"


def test_a_group_that_is_too_large_after_a_fail_over_gives_its_places_to_the_first() -> None:
    coordinator = Coordinator()
    members = coordinator.stable(3)
    coordinator.settings = settings_of(group_initial_rebalance_delay_ms=0, group_max_size=2)
    coordinator.fail_over()
    assert coordinator.beat(members[0]) is ErrorCode.REBALANCE_IN_PROGRESS
    tickets = [coordinator.join(member_id=each.member_id) for each in members]
    assert coordinator.answers[tickets[2]].code is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert [coordinator.answers[each].generation_id for each in tickets[:2]] == [3, 3]


def test_sessions_begin_anew_after_a_fail_over() -> None:
    coordinator = Coordinator()
    members = coordinator.stable(2, session_timeout_ms=10_000, rebalance_timeout_ms=60_000)
    coordinator.pass_time(9)
    coordinator.fail_over()
    coordinator.pass_time(9)
    assert coordinator.beat(members[0]) is ErrorCode.NONE
    coordinator.pass_time(1)
    assert coordinator.beat(members[0]) is ErrorCode.REBALANCE_IN_PROGRESS
