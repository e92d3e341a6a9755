"""What befalls a member of a classic group that the group no longer knows; the rest is in test_group."""

import asyncio

from riverlog.client.consumer.classic_member import _refused
from riverlog.client.network.cluster import Cluster
from riverlog.client.network.coordinator import GroupCoordinator
from riverlog.model.errors import ErrorCode
from riverlog.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from tests.support.members import ADDRESS, Member, a_node, write


async def test_a_member_that_was_removed_is_told_so_and_joins_anew() -> None:
    async with a_node() as universe:
        await write(universe, 8)
        member = Member(universe, "member")
        await asyncio.sleep(5)
        assert member.consumer is not None
        assert member.consumer._group is not None
        removed = member.consumer._group.member_id
        cluster = Cluster(ADDRESS, ports=universe.ports)
        await cluster.start()
        await GroupCoordinator(cluster, "billing").ask(
            LeaveGroupRequest(group_id="billing", members=[MemberIdentity(member_id=removed)])
        )
        await cluster.close()
        await asyncio.sleep(5)
        assert [sign for sign, _ in member.events] == ["+", "lost", "+"]
        assert member.consumer._group.member_id != removed
        await member.stop()


def test_refusals_say_what_to_do() -> None:
    assert 'assignor="range"' in _refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "g", "cooperative-sticky")
    assert "same group_instance_id" in _refused(ErrorCode.FENCED_INSTANCE_ID, "g", "range")
    assert _refused(ErrorCode.GROUP_MAX_SIZE_REACHED, "g", "range") == "group 'g': group max size reached"
