"""Controllers that say what they are."""

import asyncio

from riverlog.metadata.features import NODE_FEATURES
from tests.support.clusters import ClusterOfNodes
from tests.support.virtual_time import run


def test_every_controller_registers_and_its_next_process_again() -> None:
    async def scenario() -> None:
        cluster = ClusterOfNodes({1: "controller", 2: "controller", 3: "controller"})
        await cluster.start()

        def registered(node: int = 1) -> dict[int, object]:
            return {each.id: each.incarnation_id for each in cluster.nodes[node].controller.image.controllers.values()}

        await cluster.until(lambda: all(len(registered(node)) == 3 for node in (1, 2, 3)))
        first = registered()
        known = cluster.nodes[2].controller.image.controllers[1]
        assert [(each.listener, each.host, each.port) for each in known.endpoints] == [("CONTROLLER", "n1", 9093)]
        assert known.features == dict(NODE_FEATURES)
        end = cluster.nodes[1].controller.end_offset
        await asyncio.sleep(60)
        assert cluster.nodes[1].controller.end_offset == end, "nothing is sent again"
        other = next(node for node in (1, 2, 3) if node != cluster.active())
        await cluster.stop(other)
        await cluster.start(other)
        active = cluster.active()
        assert active is not None
        await cluster.until(lambda: registered(active)[other] != first[other])
        assert {node: each for node, each in registered(active).items() if node != other} == {
            node: each for node, each in first.items() if node != other
        }
        await cluster.stop()

    run(scenario())


def test_a_controller_that_finds_no_leader_registers_when_there_is_one() -> None:
    async def scenario() -> None:
        cluster = ClusterOfNodes({1: "controller", 2: "controller", 3: "controller"})
        await cluster.start(1)
        await asyncio.sleep(120)
        assert cluster.active() is None
        await cluster.start(2)
        await cluster.until(cluster.active)
        await cluster.until(lambda: set(cluster.nodes[1].controller.image.controllers) == {1, 2})
        await cluster.stop()

    run(scenario())
