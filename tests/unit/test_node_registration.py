"""How a node's broker joins its cluster: with the epoch in which it stopped, if it stopped cleanly."""

from tests.support.clusters import ClusterOfNodes
from tests.support.virtual_time import run


def test_a_clean_stop_is_remembered_by_its_epoch() -> None:
    async def scenario() -> None:
        cluster = ClusterOfNodes({1: "controller", 4: "broker"})
        await cluster.start()
        [directory] = cluster.nodes[4].parts.registry.directories
        epoch = cluster.nodes[1].controller.image.brokers[4].epoch
        assert directory.logs.broker_epoch == epoch
        await cluster.stop(4)
        node = cluster.build(4)
        await node.start()
        assert node.parts.registry.directories[0].logs.broker_epoch > epoch
        await cluster.stop()

    run(scenario())
