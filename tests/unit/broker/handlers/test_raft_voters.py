"""Voters that are added and removed through a broker or the controller itself."""

from dataclasses import replace

import pytest

from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.add_raft_voter import AddRaftVoterRequest
from riverlog.wire.messages.endpoints import ListenerEndpoint
from riverlog.wire.messages.remove_raft_voter import RemoveRaftVoterRequest
from tests.support.asking import Line, serving
from tests.support.clusters import CLUSTER_ID, ClusterOfNodes, controller_line
from tests.support.denial import deny
from tests.support.raft import directory
from tests.support.virtual_time import run

STRANGER = AddRaftVoterRequest(CLUSTER_ID, 1000, 9, directory(9), [ListenerEndpoint("CONTROLLER", "n9", 9093)])


def test_a_voter_goes_and_comes_back_by_way_of_a_broker() -> None:
    async def scenario() -> None:
        cluster = ClusterOfNodes({1: "controller", 2: "controller", 3: "controller", 4: "broker"})
        await cluster.start()
        active = cluster.active()
        gone = next(node for node in (1, 2, 3) if node != active)
        line = Line(await cluster.network.connect("n4", 9092))
        removed = RemoveRaftVoterRequest(CLUSTER_ID, gone, directory(gone))
        response = await line.ask(ApiKey.REMOVE_RAFT_VOTER, 0, removed)
        assert (response.error_code, response.error_message) == (ErrorCode.NONE, None)
        voters = cluster.nodes[active or 0].controller.quorum
        assert sorted(voters.voters.ids) == sorted({1, 2, 3} - {gone})
        here = [ListenerEndpoint("CONTROLLER", f"n{gone}", 9093)]
        added = AddRaftVoterRequest(CLUSTER_ID, 1000, gone, directory(gone), here)
        response = await line.ask(ApiKey.ADD_RAFT_VOTER, 1, added)
        assert (response.error_code, response.error_message) == (ErrorCode.NONE, None)
        assert sorted(voters.voters.ids) == [1, 2, 3]
        await cluster.stop()

    run(scenario())


def test_a_node_that_does_not_answer_is_no_voter() -> None:
    async def scenario() -> None:
        async with controller_line() as (line, _cluster):
            response = await line.ask(ApiKey.ADD_RAFT_VOTER, 1, STRANGER)
            assert response.error_code == ErrorCode.REQUEST_TIMED_OUT
            assert response.error_message == "The node to be added does not answer."

    run(scenario())


async def test_a_node_that_is_alone_has_no_way_to_others() -> None:
    async with serving() as (line, node):
        request = replace(STRANGER, cluster_id=node.cluster_id)
        response = await line.ask(ApiKey.ADD_RAFT_VOTER, 1, request)
        assert response.error_code == ErrorCode.REQUEST_TIMED_OUT
        assert len(node.controller.quorum.voters) == 1


async def test_not_everybody_may_change_voters(monkeypatch: pytest.MonkeyPatch) -> None:
    deny(monkeypatch, Operation.ALTER)
    async with serving() as (line, _node):
        response = await line.ask(ApiKey.REMOVE_RAFT_VOTER, 0, RemoveRaftVoterRequest(None, 9, directory(9)))
        assert response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
