"""Brokers that are gone for good."""

import pytest

from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.unregister_broker import UnregisterBrokerRequest
from tests.support.asking import Line, serving
from tests.support.clusters import ClusterOfNodes
from tests.support.denial import deny
from tests.support.virtual_time import run


def test_a_broker_is_forgotten_on_request_of_any_other_broker_s_client() -> None:
    async def scenario() -> None:
        cluster = ClusterOfNodes({1: "controller", 4: "broker", 5: "broker"})
        await cluster.start()
        await cluster.stop(4)
        line = Line(await cluster.network.connect("n5", 9092))
        response = await line.ask(ApiKey.UNREGISTER_BROKER, 0, UnregisterBrokerRequest(4))
        assert response.error_code == ErrorCode.NONE
        assert set(cluster.nodes[1].controller.image.brokers) == {5}
        response = await line.ask(ApiKey.UNREGISTER_BROKER, 0, UnregisterBrokerRequest(4))
        assert (response.error_code, response.error_message) == (
            ErrorCode.BROKER_ID_NOT_REGISTERED,
            "There is no broker 4.",
        )
        await cluster.stop()

    run(scenario())


async def test_the_only_broker_stays_while_it_runs() -> None:
    async with serving(node_id="4") as (line, node):
        response = await line.ask(ApiKey.UNREGISTER_BROKER, 0, UnregisterBrokerRequest(4))
        assert response.error_code == ErrorCode.INVALID_REQUEST
        assert "Broker 4 is the only one of its cluster, and runs" in response.error_message
        assert set(node.controller.image.brokers) == {4}


async def test_not_everybody_may_take_brokers_out(monkeypatch: pytest.MonkeyPatch) -> None:
    deny(monkeypatch, Operation.ALTER)
    async with serving() as (line, _node):
        response = await line.ask(ApiKey.UNREGISTER_BROKER, 0, UnregisterBrokerRequest(9))
        assert response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
