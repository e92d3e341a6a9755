"""Requests that a broker hands on to the active controller."""

import pytest

from riverlog.client.admin.admin import Admin
from riverlog.client.errors import KafkaError
from riverlog.model.errors import ErrorCode
from tests.support.clusters import ClusterOfNodes
from tests.support.virtual_time import run


def test_a_client_of_a_broker_cannot_tell_who_decides() -> None:
    async def scenario() -> None:
        cluster = ClusterOfNodes({1: "controller", 4: "broker", 5: "broker"})
        await cluster.start()
        async with Admin(cluster.address(5), ports=cluster.ports) as admin:
            await admin.create_topic("events", partitions=2)
            await admin.create_partitions("events", 3)
            with pytest.raises(KafkaError) as refused:
                await admin.create_topic("events")
            assert refused.value.code is ErrorCode.TOPIC_ALREADY_EXISTS
            assert (await admin.describe_quorum()).leader == 1
            await admin.delete_topics("events")
        await cluster.stop()

    run(scenario())


def test_without_a_controller_nothing_is_said_that_is_not_known() -> None:
    async def scenario() -> None:
        cluster = ClusterOfNodes({1: "controller", 4: "broker"})
        await cluster.start()
        async with Admin(cluster.address(4), ports=cluster.ports) as admin:
            await cluster.stop(1)
            with pytest.raises(KafkaError):
                await admin.create_topic("events")
        await cluster.stop()

    run(scenario())
