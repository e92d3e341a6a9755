"""Classic groups as administration sees them."""

from riverlog.groups.commands import (
    CommitOffsets,
    DescribedGroup,
    DescribedMember,
    DescribeGroups,
    GroupType,
    ListedGroup,
    ListGroups,
    OffsetToCommit,
)
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import Offset
from tests.support.groups import CLIENT, Coordinator, subscription


def described(coordinator: Coordinator, group_id: str = "g") -> DescribedGroup:
    group: DescribedGroup
    (group,) = coordinator.ask(DescribeGroups((group_id,)))
    return group


def test_a_stable_group_is_described_with_all_that_its_members_said() -> None:
    coordinator = Coordinator()
    member_id = coordinator.stable()[0].member_id
    assert described(coordinator) == DescribedGroup(
        "g",
        "Stable",
        "consumer",
        "range",
        (DescribedMember(member_id, None, CLIENT, subscription("t"), member_id.encode()),),
    )


def test_a_group_in_between_is_described_with_its_members_alone() -> None:
    coordinator = Coordinator()
    member_id, _ = coordinator.enter()
    group = described(coordinator)
    assert (group.state, group.protocol_name) == ("CompletingRebalance", "")
    assert group.members == (DescribedMember(member_id, None, CLIENT, b"", b""),)


def test_a_generation_begins_with_nothing_assigned() -> None:
    coordinator = Coordinator()
    member = coordinator.stable()[0]
    coordinator.join(member_id=member.member_id)
    assert [each.assignment for each in described(coordinator).members] == [b""]


def test_a_group_that_does_not_exist_is_dead() -> None:
    group = described(Coordinator(), "missing")
    assert (group.state, group.code) == ("Dead", ErrorCode.GROUP_ID_NOT_FOUND)
    assert group.message == "There is no classic group 'missing'."


def test_a_group_that_only_has_offsets_is_empty() -> None:
    coordinator = Coordinator()
    coordinator.ask(CommitOffsets("simple", (OffsetToCommit("t", 0, Offset(1)),)))
    assert described(coordinator, "simple") == DescribedGroup("simple", "Empty")
    assert coordinator.ask(ListGroups()) == (ListedGroup("simple", "", "Empty", GroupType.CLASSIC),)


def test_a_group_whose_first_member_is_on_its_way_is_empty() -> None:
    coordinator = Coordinator()
    coordinator.join()
    assert described(coordinator).state == "Empty"
