"""The machine as a whole: groups come and go, and nothing is remembered that no record says."""

from copy import deepcopy

from riverlog.groups.commands import (
    CommitOffsets,
    DeleteGroups,
    DescribeGroups,
    FetchOffsets,
    GroupType,
    ListedGroup,
    ListGroups,
    OffsetToCommit,
    Sync,
    Woken,
)
from riverlog.groups.machine import GroupsMachine
from riverlog.groups.records import GroupMetadataKey, GroupRecord
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import Offset
from riverlog.model.machine import Instant, Moment, Ticket
from tests.support.groups import Coordinator, settings_of


def commit(coordinator: Coordinator, group_id: str) -> None:
    coordinator.ask(CommitOffsets(group_id, (OffsetToCommit("t", 0, Offset(1)),)))


def test_groups_are_listed_by_state_and_type() -> None:
    coordinator = Coordinator()
    coordinator.stable()
    coordinator.enter("h")
    commit(coordinator, "simple")
    everything = coordinator.ask(ListGroups())
    assert everything == (
        ListedGroup("g", "consumer", "Stable", GroupType.CLASSIC),
        ListedGroup("h", "consumer", "CompletingRebalance", GroupType.CLASSIC),
        ListedGroup("simple", "", "Empty", GroupType.CLASSIC),
    )
    stable = coordinator.ask(ListGroups(states=frozenset({"stable", "dead"})))
    assert [each.group_id for each in stable] == ["g"]
    assert coordinator.ask(ListGroups(types=frozenset({"classic"}))) == everything
    assert coordinator.ask(ListGroups(types=frozenset({"share"}))) == ()


def test_empty_groups_are_deleted_with_their_offsets() -> None:
    coordinator = Coordinator()
    coordinator.stable()
    commit(coordinator, "simple")
    coordinator.stable(group_id="left", session_timeout_ms=6_000)
    coordinator.join("handed-out", session_timeout_ms=60_000)
    coordinator.pass_time(7)
    reply = coordinator.ask(DeleteGroups(("g", "simple", "missing", "left", "simple", "handed-out")))
    assert reply.codes == (
        ErrorCode.NON_EMPTY_GROUP,
        ErrorCode.NONE,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.NONE,
    )
    assert [each.group_id for each in coordinator.ask(ListGroups())] == ["g"]
    assert GroupRecord(GroupMetadataKey("left"), None) in coordinator.log
    assert coordinator.ask(FetchOffsets("simple", None)).offsets == ()
    coordinator.pass_time(60)  # the id that was handed out is not missed


def test_a_machine_that_was_replayed_wants_to_be_woken() -> None:
    coordinator = Coordinator()
    coordinator.stable()
    coordinator.fail_over()
    assert coordinator.machine.next_deadline() == 0
    assert coordinator.ask(Woken()) is None
    deadline = coordinator.machine.next_deadline()
    assert deadline is not None
    assert deadline > coordinator.seconds


def test_a_snapshot_is_the_state() -> None:
    coordinator = Coordinator()
    coordinator.stable(2)
    commit(coordinator, "simple")
    copy = GroupsMachine(coordinator.settings, coordinator.topics)
    for fact in coordinator.machine.snapshot():
        copy.apply(fact)
    assert copy.state == coordinator.machine.state


def test_deciding_changes_nothing_that_is_remembered() -> None:
    coordinator = Coordinator()
    member_id, ticket = coordinator.enter()
    before = deepcopy(coordinator.machine.state)
    joined = coordinator.answers[ticket]
    decision = coordinator.machine.decide(
        Sync("g", member_id, joined.generation_id, assignments={member_id: b"x"}),
        Ticket(99),
        Moment(Instant(coordinator.seconds), 0),
    )
    assert decision.records
    assert coordinator.machine.state == before


def test_describing_nothing_says_nothing() -> None:
    assert Coordinator(settings_of()).ask(DescribeGroups(())) == ()


def test_a_join_is_answered_by_another_members_command() -> None:
    coordinator = Coordinator()
    member = coordinator.stable()[0]
    _, waiting = coordinator.enter()
    assert coordinator.waits(waiting)
    coordinator.join(member_id=member.member_id)
    assert coordinator.answers[waiting].generation_id == 2
