"""Offsets of a transaction for a group on another broker; test_other_brokers.py commits some."""

import pytest

from riverlog.coordination.other_brokers import OtherBrokers
from riverlog.groups.commands import CommitOffsets, OffsetToCommit
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NodeId, Offset
from tests.support.asking import serving
from tests.support.second_broker import SecondBroker
from tests.support.transactions import producer_of
from tests.support.world import Universe

COMMIT = CommitOffsets("g", (OffsetToCommit("t", 0, Offset(1)),), producer=producer_of(7, 0))


async def test_a_coordinator_that_does_not_answer_or_has_moved_is_asked_again_later() -> None:
    universe = Universe()
    async with serving(universe) as (_line, node):
        far = await SecondBroker.join(node)
        parts = node.parts
        others = OtherBrokers(NodeId(1), universe.network, node.cluster_id, parts.metadata, universe.clock, "")
        with pytest.raises(Refusal, match="does not answer") as refused:
            await others.offsets.commit(NodeId(2), "tx", COMMIT)
        assert refused.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
        await far.create("t", (1,))
        await far.create("__consumer_offsets", (2,), cleanup_policy="compact")
        with pytest.raises(Refusal, match="is moving") as refused:  # the node itself coordinates nothing
            await others.offsets.commit(NodeId(1), "tx", COMMIT)
        assert refused.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
        await others.close()
