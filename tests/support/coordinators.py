"""A transaction coordinator beside a simulated node, with another way to the partitions than its own."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from riverlog.controller.metadata_requests import MetadataRequests
from riverlog.coordination.transactions import TransactionCoordinator
from riverlog.model.ids import NodeId
from riverlog.model.transactions import MarkerPort
from riverlog.node import Node
from riverlog.observe.stats import TransactionStats
from tests.support.world import Universe


@asynccontextmanager
async def transactions_of(universe: Universe, node: Node, markers: MarkerPort) -> AsyncIterator[TransactionCoordinator]:
    """Yield coordinators that write to the node's logs and send markers through the given port."""
    transactions = TransactionCoordinator(
        node.parts.metadata,
        MetadataRequests(node.parts.controller, NodeId(1)),
        node.parts.replicas,
        producer_ids=node.parts.producer_ids,
        markers=markers,
        clock=universe.clock,
        random=universe.random,
        stats=TransactionStats(),
    )
    transactions.start()
    try:
        yield transactions
    finally:
        transactions.stop_waiting()
        await transactions.close()
