"""What a scrape sees of a node: its partitions, used or not, and its log directories."""

import asyncio

from riverlog import Admin, Producer
from riverlog.observe.limits import SCRAPED_PER_TURN
from riverlog.observe.metrics import scrape
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tests.support.asking import serving
from tests.support.clusters import ClusterOfNodes
from tests.support.second_broker import SecondBroker
from tests.support.virtual_time import run
from tests.support.world import Universe


async def test_a_scrape_sees_partitions_and_directories() -> None:
    universe = Universe()
    node = universe.node()
    await node.start()
    async with Admin("node:9092", ports=universe.ports) as admin:
        await admin.create_topic("orders", partitions=2)
    async with Producer("node:9092", ports=universe.ports) as producer:
        await producer.send("orders", b"value", partition=1)
    metrics = node.parts.metrics
    assert [(each.partition, each.high_watermark) for each in metrics.partitions()] == [(0, 0), (1, 1)]
    assert list(metrics.topics()) == [("orders", 2)]
    assert [each.address for each in metrics.brokers()] == ["node:9092"]
    (directory,) = metrics.log_directories()
    assert directory.online
    assert directory.size_bytes == sum(each.size_bytes for each in metrics.partitions()) > 0
    assert list(metrics.pipelines()) == []
    await node.stop()


async def test_a_scrape_sees_what_is_led_here_alone() -> None:
    async with serving() as (_line, node):
        other = await SecondBroker.join(node)
        await other.create("orders", (2, 1), (1, 2), (2, 1))
        assert [each.partition for each in node.parts.metrics.partitions()] == [1]
        await other.fence()
        assert [each.partition for each in node.parts.metrics.partitions()] == [0, 1, 2]


async def test_others_have_their_turn_while_thousands_of_partitions_are_scraped() -> None:
    async with serving() as (line, node):
        await line.ask(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest([CreatableTopic("orders", 3 * SCRAPED_PER_TURN)]))
        scraping = asyncio.ensure_future(scrape(node.parts.metrics, version="1"))
        turns = 0
        while not scraping.done():
            await asyncio.sleep(0)
            turns += 1
        assert len(scraping.result().partitions) == 3 * SCRAPED_PER_TURN
        assert turns > 3


def test_a_scrape_sees_the_quorum_from_each_side() -> None:
    async def scenario() -> None:
        cluster = ClusterOfNodes({1: "controller", 2: "controller", 3: "controller", 4: "broker", 5: "broker"})
        await cluster.start()
        async with Admin(cluster.address(4), ports=cluster.ports) as admin:
            await admin.create_topic("orders", partitions=4)
        await cluster.stop(5)
        active = cluster.active()
        assert active is not None
        samples = {}
        for number, node in cluster.nodes.items():
            source = node.parts.metrics if number == 4 else node.controller_metrics()
            sample = samples[number] = source.quorum()
            await cluster.until(lambda source=source: source.quorum().applied_offset == source.quorum().high_watermark)
            assert (sample.leader_id, sample.voters) == (active, 3)
            assert (await scrape(source, version="1")).readings
        states = {number: sample.state for number, sample in samples.items()}
        assert states == {1: "follower", 2: "follower", 3: "follower", 4: "observer", active: "leader"}
        decided = samples[active].controller
        assert decided is not None
        assert (decided.active_brokers, decided.fenced_brokers) == (1, 1)
        assert (decided.offline_partitions or 0) > 0, "those that were led by the broker that is gone"
        assert sum(samples[active].stats.commits.counts) > 0
        assert sum(samples[active].stats.queue.counts) > 0
        assert sum(samples[active].stats.elections.counts) == 1
        assert [number for number, sample in samples.items() if sample.controller is not None] == [active]
        await cluster.stop()

    run(scenario())
