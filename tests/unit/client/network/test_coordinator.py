"""A group's coordinator is found, and found again."""

import pytest

from riverlog.client.errors import KafkaError, Unreachable
from riverlog.client.network.cluster import Cluster
from riverlog.client.network.coordinator import GroupCoordinator, _single, asking_again
from riverlog.model.errors import ErrorCode
from riverlog.wire.messages.describe_groups import DescribeGroupsRequest
from riverlog.wire.messages.find_coordinator import FindCoordinatorResponse
from tests.support.members import ADDRESS
from tests.support.world import Universe


async def test_a_coordinator_that_went_away_is_looked_for_at_the_next_call() -> None:
    universe = Universe()
    node = universe.node()
    await node.start()
    cluster = Cluster(ADDRESS, ports=universe.ports)
    await cluster.start()
    coordinator = GroupCoordinator(cluster, "billing")
    question = DescribeGroupsRequest(groups=["billing"])
    assert (await coordinator.ask(question)).groups[0].group_id == "billing"
    await node.stop()
    with pytest.raises(Unreachable):
        await coordinator.ask(question)
    node = universe.node()
    await node.start()
    assert (await coordinator.ask(question)).groups[0].group_id == "billing"
    await cluster.close()
    await node.stop()


def test_an_older_brokers_answer_speaks_of_one_coordinator() -> None:
    found = _single(FindCoordinatorResponse(node_id=3, host="h", port=9, error_code=0))
    assert (found.node_id, found.host, found.port) == (3, "h", 9)


async def test_what_is_asked_again_and_again_counts_as_unanswered() -> None:
    universe = Universe()
    node = universe.node()
    await node.start()
    cluster = Cluster(ADDRESS, ports=universe.ports)
    await cluster.start()
    waiting: list[float | None] = []
    loading = KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "loading")

    async def ask() -> str:
        waiting.append(cluster.waiting_since())
        if len(waiting) < 3:
            raise loading
        return "answer"

    assert await asking_again(cluster, ask) == "answer"
    assert waiting[0] is None, "nothing was asked before"
    assert waiting[1] is not None
    assert waiting[1] == waiting[2], "since the first refusal"
    assert (cluster.waiting_since(), cluster.last_problem) == (None, None)
    await cluster.close()
    await node.stop()
