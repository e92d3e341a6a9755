"""What a broker itself asks of the controller, decided elsewhere."""

from riverlog.metadata.commands.topics import TopicCreation
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NO_TOPIC_ID
from tests.support.clusters import ClusterOfNodes
from tests.support.virtual_time import run


def test_topics_and_producer_ids_come_from_the_active_controller() -> None:
    async def scenario() -> None:
        cluster = ClusterOfNodes({1: "controller", 4: "broker", 5: "broker"})
        await cluster.start()
        requests = cluster.nodes[4].part.requests
        new = TopicCreation("kept", NO_TOPIC_ID, 2, 1, configs={"cleanup.policy": "compact"})
        for expected in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            [outcome] = await requests.create_topics([new])
            assert outcome.code is expected
        image = cluster.nodes[1].controller.image
        topic = image.topic("kept")
        assert topic is not None
        assert topic.partition_count == 2
        assert image.topic_overrides("kept") == {"cleanup.policy": "compact"}
        blocks = [await cluster.nodes[node].part.requests.allocate_producer_ids() for node in (4, 5, 4)]
        assert [block.first for block in blocks] == [0, 1000, 2000]
        await cluster.stop()

    run(scenario())
