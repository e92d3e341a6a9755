"""One record by its offset."""

import pytest

from riverlog import Producer, TopicPartition
from riverlog.client.consumer.record_lookup import read_at
from riverlog.client.errors import KafkaError
from riverlog.client.network.cluster import Cluster
from riverlog.wire.messages.fetch import FetchRequest
from tests.support.members import ADDRESS, TOPIC, a_node
from tests.support.mishaps import Mishaps

ZERO = TopicPartition(TOPIC, 0)


async def test_a_record_is_read_wherever_it_lies(monkeypatch: pytest.MonkeyPatch) -> None:
    mishaps = Mishaps(monkeypatch)
    async with a_node() as universe:
        async with Producer(ADDRESS, ports=universe.ports) as producer:
            sent = [producer.send_soon(TOPIC, b"%d" % number, partition=0) for number in range(10)]
            await producer.flush()
            large = await producer.send(TOPIC, b"x" * 300_000, partition=0)
        cluster = Cluster(ADDRESS, ports=universe.ports)
        await cluster.start()
        for number, delivery in enumerate(sent):
            found = await read_at(cluster, ZERO, delivery.result().offset)
            assert found is not None
            assert found.value == b"%d" % number
        found = await read_at(cluster, ZERO, large.offset, bytes_max=10)
        assert found is not None
        assert len(found.value or b"") == 300_000
        mishaps.lost.append(FetchRequest)
        assert await read_at(cluster, ZERO, 3) is not None
        assert await read_at(cluster, ZERO, large.offset + 1) is None
        with pytest.raises(KafkaError):
            await read_at(cluster, ZERO, 1_000)
        await cluster.close()
