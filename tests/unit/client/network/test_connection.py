"""One connection: versions agreed on, answers in order, deadlines, and all the ways it can break."""

import asyncio
from sys import maxsize

import pytest

from riverlog.client.errors import KafkaError, TimedOut, Unreachable
from riverlog.client.network.connection import Connection
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import Address
from riverlog.model.ports import Socket
from riverlog.wire.apis import ApiKey, Versions
from riverlog.wire.messages.api_versions import ApiVersionsRequest
from riverlog.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from riverlog.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from riverlog.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from riverlog.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.support.brokers import FakeCluster
from tests.support.network import MemoryNetwork


async def connect(cluster: FakeCluster, *, request_seconds: float = 30.0) -> Connection:
    address = cluster.brokers[1].address
    return await Connection.open(
        cluster.network, address, client_id="test", connect_seconds=5.0, request_seconds=request_seconds
    )


async def test_the_highest_common_version_is_used() -> None:
    cluster = FakeCluster()
    cluster.versions[ApiKey.METADATA] = Versions(0, 5)
    connection = await connect(cluster)
    assert connection.version_of(ApiKey.METADATA) == 5
    assert connection.version_of(ApiKey.FETCH) == 18
    await connection.request(MetadataRequest(topics=[]))
    assert cluster.requests[-1][:3] == (1, ApiKey.METADATA, 5)
    await connection.request(MetadataRequest(topics=[]), version_max=4)
    assert cluster.requests[-1][:3] == (1, ApiKey.METADATA, 4)
    await connection.request(MetadataRequest(topics=[]), version_max=9)
    assert cluster.requests[-1][:3] == (1, ApiKey.METADATA, 5)
    connection.close()


@pytest.mark.parametrize("versions", [Versions(0, 0), Versions(0, 2)])
async def test_a_broker_older_than_our_first_question_is_asked_again(versions: Versions) -> None:
    cluster = FakeCluster()
    cluster.versions[ApiKey.API_VERSIONS] = versions
    connection = await connect(cluster)
    assert connection.version_of(ApiKey.METADATA) == 13
    assert [version for _, key, version, _ in cluster.requests if key is ApiKey.API_VERSIONS] == [0]
    connection.close()


async def test_an_api_that_the_broker_lacks_is_named() -> None:
    cluster = FakeCluster()
    del cluster.versions[ApiKey.INIT_PRODUCER_ID]
    cluster.versions[ApiKey.FETCH] = Versions(0, 3)
    connection = await connect(cluster)
    for request in (InitProducerIdRequest(), FetchRequest()):
        with pytest.raises(KafkaError, match=r"does not offer (InitProducerId|Fetch)") as raised:
            await connection.request(request)
        assert raised.value.code is ErrorCode.UNSUPPORTED_VERSION
    connection.close()


async def test_requests_are_pipelined_and_answered_in_order() -> None:
    cluster = FakeCluster(latency_seconds=1.0)
    for name in "abcd":
        cluster.create_topic(name)
    connection = await connect(cluster)
    start = asyncio.get_running_loop().time()
    answers: list[MetadataResponse] = await asyncio.gather(*(connection.request(_about(name)) for name in "abcd"))
    assert [answer.topics[0].name for answer in answers] == list("abcd")
    assert asyncio.get_running_loop().time() - start == pytest.approx(2.0), "one round trip for all four"
    connection.close()


async def test_no_more_than_five_are_in_flight() -> None:
    cluster = FakeCluster()
    connection = await connect(cluster)
    waiting = [asyncio.create_task(connection.request(MetadataRequest(topics=[]))) for _ in range(12)]
    await asyncio.sleep(0)
    assert connection.in_flight == 5
    assert not connection.has_room
    await asyncio.gather(*waiting)
    assert len(cluster.asked(ApiKey.METADATA)) == 12
    connection.close()


async def test_a_large_answer_through_a_narrow_pipe_arrives_whole() -> None:
    cluster = FakeCluster()
    cluster.network.window_bytes = 700
    for number in range(300):
        cluster.create_topic(f"topic-{number}")
    connection = await connect(cluster)
    answer: MetadataResponse = await connection.request(MetadataRequest(topics=None))
    assert len(answer.topics) == 300
    connection.close()


@pytest.mark.parametrize("size", [1_000, 300_000])
async def test_fetched_records_stay_what_they_were_when_the_next_arrive(size: int) -> None:
    cluster = FakeCluster()
    cluster.create_topic("t")
    for content in (b"a", b"b", b"c"):
        cluster.write("t", 0, content * size)
    connection = await connect(cluster)
    found: list[bytes] = []
    for offset in (0, 1, 2, 0):
        answer: FetchResponse = await connection.request(_fetch(offset), version_max=12)
        found.append(answer.responses[0].partitions[0].records)
    for records, content in zip(found, (b"a", b"b", b"c", b"a"), strict=True):
        assert content * size in bytes(records)
    connection.close()


def _fetch(offset: int) -> FetchRequest:
    wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1)
    return FetchRequest(max_bytes=1_000_000, topics=[FetchTopic(topic="t", partitions=[wanted])])


async def test_a_request_that_is_not_answered_breaks_the_connection() -> None:
    cluster = FakeCluster()
    connection = await connect(cluster, request_seconds=3.0)  # shorter than the time to connect
    cluster.mishap(ApiKey.METADATA, "silence")
    start = asyncio.get_running_loop().time()
    first, second = connection.send(MetadataRequest()), connection.send(MetadataRequest())
    with pytest.raises(TimedOut, match="did not answer Metadata in time"):
        await first
    assert asyncio.get_running_loop().time() - start == pytest.approx(3.0)
    with pytest.raises(Unreachable):
        await second
    assert connection.closed
    with pytest.raises(Unreachable):
        await connection.request(MetadataRequest())


async def test_what_is_unanswered_fails_when_the_broker_goes() -> None:
    cluster = FakeCluster()
    connection = await connect(cluster)
    cluster.mishap(ApiKey.METADATA, "drop")
    waiting = [asyncio.create_task(connection.request(MetadataRequest())) for _ in range(8)]
    for outcome in await asyncio.gather(*waiting, return_exceptions=True):
        assert isinstance(outcome, Unreachable), outcome
        assert "closed the connection" in outcome.message


async def test_a_throttled_client_pauses_by_itself() -> None:
    cluster = FakeCluster()
    cluster.handlers[ApiKey.INIT_PRODUCER_ID] = lambda *_: InitProducerIdResponse(throttle_time_ms=3_000)
    connection = await connect(cluster)
    await connection.request(InitProducerIdRequest())
    start = asyncio.get_running_loop().time()
    await connection.request(MetadataRequest(topics=[]))
    assert asyncio.get_running_loop().time() - start >= 2.9
    connection.close()


async def test_nobody_listening_is_said_at_once() -> None:
    with pytest.raises(Unreachable, match=r"nowhere:1: Connection refused"):
        await Connection.open(
            MemoryNetwork(), Address("nowhere", 1), client_id="x", connect_seconds=5, request_seconds=5
        )


async def test_a_firewall_that_drops_costs_the_connect_time_out() -> None:
    network = MemoryNetwork()
    network.unreachable.add(Address("far", 1))
    with pytest.raises(Unreachable, match="within 5 s"):
        await Connection.open(network, Address("far", 1), client_id="x", connect_seconds=5, request_seconds=5)


@pytest.mark.parametrize(
    "bytes_sent",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"\xff\xff\xff\xff",
        b"\x00\x00\x00\x06\x00\x00\x00\x09\x00\x00",  # another correlation id
        b"\x00\x00\x00\x08\x00\x00\x00\x01\x00\x00\x7f\xff",  # a count that the frame cannot hold
    ],
)
async def test_what_is_no_kafka_broker_is_recognised(bytes_sent: bytes) -> None:
    network = MemoryNetwork()

    def accepted(socket: Socket) -> None:
        socket.send(bytes_sent)

    network.listen("web", 80, accepted)
    with pytest.raises(Unreachable, match="does not answer as a Kafka broker does"):
        await Connection.open(network, Address("web", 80), client_id="x", connect_seconds=5, request_seconds=5)


async def test_the_first_request_says_which_software_asks() -> None:
    cluster = FakeCluster()
    (await connect(cluster)).close()
    (asked,) = cluster.asked(ApiKey.API_VERSIONS)
    assert isinstance(asked, ApiVersionsRequest)
    assert asked.client_software_name == "riverlog"


def _about(name: str) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)


async def test_requests_beyond_the_brokers_window_wait_for_answers() -> None:
    cluster = FakeCluster()
    cluster.window_bytes = 1_000
    connection = await connect(cluster)
    large = MetadataRequest(topics=[MetadataRequestTopic(name="x" * 200) for _ in range(3)])
    waiting = [asyncio.create_task(connection.request(large)) for _ in range(6)]
    await asyncio.sleep(0)
    assert connection.in_flight == 2
    assert connection.room_bytes < 0
    assert not connection.has_room
    await asyncio.gather(*waiting)
    assert len(cluster.asked(ApiKey.METADATA)) == 6
    assert connection.room_bytes == 1_000
    connection.close()


async def test_a_request_larger_than_the_window_goes_alone() -> None:
    cluster = FakeCluster()
    cluster.window_bytes = 100
    connection = await connect(cluster)
    large = MetadataRequest(topics=[MetadataRequestTopic(name="x" * 200)])
    waiting = [asyncio.create_task(connection.request(large)) for _ in range(3)]
    await asyncio.sleep(0)
    assert connection.in_flight == 1
    await asyncio.gather(*waiting)
    connection.close()


async def test_the_newest_window_counts() -> None:
    cluster = FakeCluster()
    cluster.window_bytes = 1_000
    connection = await connect(cluster)
    assert connection.room_bytes == 1_000
    cluster.window_bytes = 300
    await connection.request(MetadataRequest(topics=[]))
    assert connection.room_bytes == 300
    connection.close()


async def test_a_broker_that_tells_no_window_has_none() -> None:
    connection = await connect(FakeCluster())
    await connection.request(MetadataRequest(topics=[]))
    assert connection.room_bytes == maxsize
    connection.close()


async def test_what_the_broker_does_not_take_leaves_no_room_until_it_does() -> None:
    cluster = FakeCluster()
    connection = await connect(cluster)
    told: list[bool] = []
    connection.on_room = lambda: told.append(connection.has_room)
    silent = ProduceRequest(
        acks=0,
        topic_data=[TopicProduceData(partition_data=[PartitionProduceData(records=memoryview(bytes(1_500_000)))])],
    )
    connection.send_unanswered(silent)
    assert not connection.has_room
    await asyncio.sleep(1)
    assert connection.has_room
    assert told == [True]
    connection.close()
