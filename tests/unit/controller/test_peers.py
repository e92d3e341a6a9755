"""The way to other controllers: each request ends once, with a response or with a reason."""

import pytest

from riverlog.controller.peers import Lane, Peers
from riverlog.controller.quorum_ports import NoResponse, Unsupported
from riverlog.model.ids import Address, LeaderEpoch, Offset
from riverlog.raft.messages import VersionsRequest, VersionsResponse, VoteRequest
from tests.support.raft import key
from tests.support.virtual_time import run
from tests.support.world import Universe

NODE = Address("node", 9092)


def vote(*, pre_vote: bool) -> VoteRequest:
    return VoteRequest(key(2), key(1), LeaderEpoch(1), LeaderEpoch(0), Offset(0), pre_vote)


def test_nobody_listens() -> None:
    async def scenario() -> None:
        peers = Peers(Universe().network, "aCluster", connect_seconds=1, request_seconds=1)
        with pytest.raises(NoResponse):
            await peers.ask(NODE, vote(pre_vote=False))
        await peers.close()

    run(scenario())


def test_a_listener_for_clients_does_not_know_what_controllers_ask() -> None:
    async def scenario() -> None:
        universe = Universe()
        node = universe.node()
        await node.start()
        peers = Peers(universe.network, "aCluster", connect_seconds=1, request_seconds=1)
        for pre_vote in (True, False):
            with pytest.raises(Unsupported):
                await peers.ask(NODE, vote(pre_vote=pre_vote))
        assert isinstance(await peers.ask(NODE, VersionsRequest()), VersionsResponse)
        connections = [await peers.connection(NODE, lane) for lane in Lane]
        assert len(set(connections)) == len(Lane), "no lane holds up another"
        assert await peers.connection(NODE, Lane.FETCH) is connections[0]
        await node.stop()
        with pytest.raises(NoResponse):
            await peers.ask(NODE, VersionsRequest())
        await peers.close()

    run(scenario())
