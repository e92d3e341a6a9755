"""What befalls a member of a KIP-848 group that the group no longer knows; the rest is in test_group."""

import asyncio

import pytest

from riverlog import Admin, Consumer
from riverlog.client.errors import KafkaError
from riverlog.client.network.cluster import Cluster
from riverlog.client.network.coordinator import GroupCoordinator
from riverlog.model.errors import ErrorCode
from riverlog.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tests.support.members import ADDRESS, TOPIC, Member, a_node, write


@pytest.mark.parametrize("with_its_group", [False, True])
async def test_a_member_that_was_removed_is_told_so_and_joins_anew(with_its_group: bool) -> None:
    async with a_node() as universe:
        await write(universe, 8)
        member = Member(universe, "member", group_protocol="consumer")
        await asyncio.sleep(10)
        assert member.consumer is not None
        assert member.consumer._group is not None
        cluster = Cluster(ADDRESS, ports=universe.ports)
        await cluster.start()
        gone = ConsumerGroupHeartbeatRequest(
            group_id="billing", member_id=member.consumer._group.member_id, member_epoch=-1
        )
        await GroupCoordinator(cluster, "billing").ask(gone)
        await cluster.close()
        if with_its_group:
            async with Admin(ADDRESS, ports=universe.ports) as admin:
                await admin.delete_groups("billing")
        await asyncio.sleep(20)
        assert [sign for sign, _ in member.events] == ["+", "lost", "+"]
        await member.stop()


async def test_an_assignor_that_the_broker_does_not_have_is_refused() -> None:
    async with a_node() as universe:
        settings = {"group": "g", "group_protocol": "consumer", "assignor": "sticky", "ports": universe.ports}
        async with Consumer(ADDRESS, **settings) as consumer:  # type: ignore[arg-type]
            consumer.subscribe([TOPIC])
            with pytest.raises(KafkaError) as refused:
                await consumer.poll(5_000)
            assert refused.value.code is ErrorCode.UNSUPPORTED_ASSIGNOR
