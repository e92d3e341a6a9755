"""The quorum of the metadata, as the admin sees it."""

import pytest

from riverlog import Admin
from riverlog.client.errors import KafkaError
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from tests.support.denial import deny
from tests.support.world import Universe


async def test_a_node_is_its_own_quorum() -> None:
    universe = Universe()
    node = universe.node()
    await node.start()
    async with Admin("node:9092", ports=universe.ports) as admin:
        quorum = await admin.describe_quorum()
        [voter] = quorum.voters
        assert (quorum.leader, voter.node_id, quorum.observers, quorum.epoch) == (1, 1, (), 1)
        assert quorum.lag(voter) == 0
        assert voter.end_offset == quorum.high_watermark > 0
        assert voter.directory_id.int > 0
    await node.stop()
    again = universe.node()
    await again.start()
    async with Admin("node:9092", ports=universe.ports) as admin:
        assert (await admin.describe_quorum()).epoch == 2
    await again.stop()


async def test_not_everybody_may_see_it(monkeypatch: pytest.MonkeyPatch) -> None:
    deny(monkeypatch, Operation.DESCRIBE)
    universe = Universe()
    node = universe.node()
    await node.start()
    async with Admin("node:9092", ports=universe.ports) as admin:
        with pytest.raises(KafkaError) as refused:
            await admin.describe_quorum()
        assert refused.value.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    await node.stop()
