"""Groups of each protocol answer what offsets and administration ask."""

from riverlog.groups.classic.membership import ClassicMembership
from riverlog.groups.machine import GroupsMachine
from riverlog.groups.membership import GroupsOfProtocol, Retention
from riverlog.groups.topics import NoTopics
from tests.support.groups import settings_of


def test_classic_groups_answer_all_of_it() -> None:
    membership: GroupsOfProtocol = GroupsMachine(settings_of(), NoTopics())._membership("g")
    assert isinstance(membership, ClassicMembership)
    assert membership.retention("unknown") == Retention()
