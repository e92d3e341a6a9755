"""Brokers for client tests: real frames over the memory network, a log per partition, and a script of mishaps.

They keep batches as they come, number them, and check sequences as Kafka does, so that a client that loses, repeats
or reorders records is found out. What should go wrong is queued per API with `FakeCluster.mishap`.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any
from uuid import UUID

from riverlog.client.ports import Ports
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import Address, LeaderEpoch, Offset
from riverlog.model.ports import Socket
from riverlog.records.batch import BatchHeader, assign, read_header
from riverlog.records.record import BatchBuilder, Record, read_batches
from riverlog.wire.apis import API_BY_KEY, Api, ApiKey, Versions
from riverlog.wire.codec import decode
from riverlog.wire.framing import FrameBuffer
from riverlog.wire.headers import decode_request_header, encode_response, with_window
from riverlog.wire.messages.api_versions import ApiVersion, ApiVersionsResponse
from riverlog.wire.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from riverlog.wire.messages.init_producer_id import InitProducerIdResponse
from riverlog.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from riverlog.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from riverlog.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from tests.support.network import MemoryNetwork
from tests.support.virtual_time import VirtualClock

Handler = Callable[[Any, int], Any]
Mishap = ErrorCode | str
"""An error code to answer with, or `drop` (unheard), `lose` (done, answer lost), `silence`, or `delay` (a second)."""


@dataclass
class FakeTopic:
    """A topic: its id, its logs, and who leads each."""

    topic_id: UUID
    logs: list["FakeLog"]
    leaders: list[int]
    epochs: list[int]


@dataclass
class FakeLog:
    """Batches in order, with producers' sequences checked as Kafka checks them."""

    batches: list[bytearray] = field(default_factory=list)
    start: int = 0
    end: int = 0
    aborted: list[tuple[int, int]] = field(default_factory=list)
    producers: dict[int, tuple[int, deque[tuple[int, int, int]]]] = field(default_factory=dict)

    def append(self, batch: bytes, epoch: int = 0) -> tuple[ErrorCode, int]:
        header = read_header(batch)
        if header.producer_id >= 0 and not header.is_control:
            code, known = self._check(header)
            if known is not None or code != ErrorCode.NONE:
                return code, -1 if known is None else known
        kept = bytearray(batch)
        assign(memoryview(kept), Offset(self.end), LeaderEpoch(epoch))
        base = self.end
        if header.producer_id >= 0 and not header.is_control:
            producer_epoch, last = self.producers.get(header.producer_id, (-1, deque(maxlen=5)))
            if producer_epoch != header.producer_epoch:
                last = deque(maxlen=5)
            last.append((header.base_sequence, header.last_sequence, base))
            self.producers[header.producer_id] = (header.producer_epoch, last)
        self.batches.append(kept)
        self.end += header.record_count
        return ErrorCode.NONE, base

    def _check(self, header: BatchHeader) -> tuple[ErrorCode, int | None]:
        epoch, last = self.producers.get(header.producer_id, (-1, deque()))
        if header.producer_epoch < epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH, None
        if header.producer_epoch > epoch:
            fresh = header.base_sequence == 0 or epoch == -1
            return (ErrorCode.NONE if fresh else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER), None
        for first, end, base in last:
            if (first, end) == (header.base_sequence, header.last_sequence):
                return ErrorCode.NONE, base
        expected = (last[-1][1] + 1) & 0x7FFF_FFFF
        return (ErrorCode.NONE if header.base_sequence == expected else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER), None

    def read(self, offset: int, bytes_max: int, *, at_least_one: bool) -> bytes:
        out = bytearray()
        for batch in self.batches:
            if read_header(batch).next_offset > offset:
                if len(out) + len(batch) > bytes_max and (out or not at_least_one):
                    break
                out += batch
        return bytes(out)

    def records(self) -> list[Record]:
        return [record for _, batch in read_batches(b"".join(self.batches)) for record in batch]


class FakeCluster:
    """Some brokers that share topics. Node ids start at 1; node 1 is the controller."""

    def __init__(
        self,
        *,
        nodes: int = 1,
        latency_seconds: float = 0.001,
        auto_create: bool = True,
        network: MemoryNetwork | None = None,
    ) -> None:
        self.network = network or MemoryNetwork(latency_seconds=latency_seconds)
        self.ports = Ports(self.network, VirtualClock(), Random(7))
        self.topics: dict[str, FakeTopic] = {}
        self.auto_create = auto_create
        self.versions: dict[ApiKey, Versions] = {key: api.versions for key, api in API_BY_KEY.items()}  # type: ignore[misc]
        self.handlers: dict[ApiKey, Handler] = {}
        """Answers for APIs that are not built in, and instead of those that are: (request, node) -> response."""
        self.requests: list[tuple[int, ApiKey, int, Any]] = []
        """All that was asked: node, API, version, request."""
        self.brokers = {node: FakeBroker(self, node) for node in range(1, nodes + 1)}
        self.producer_ids = 100
        self.window_bytes = 0
        """The window that answers tell, as those of riverlog do; 0 tells none."""
        self._mishaps: dict[ApiKey, deque[Mishap | None]] = defaultdict(deque)

    @property
    def bootstrap(self) -> str:
        return ",".join(str(broker.address) for broker in self.brokers.values())

    def mishap(self, key: ApiKey, *what: Mishap | None) -> None:
        """Spoil the next requests of an API, each in its way; None lets one pass."""
        self._mishaps[key].extend(what)

    def next_mishap(self, key: ApiKey) -> Mishap | None:
        return self._mishaps[key].popleft() if self._mishaps[key] else None

    def create_topic(self, name: str, partitions: int = 1) -> FakeTopic:
        nodes = sorted(self.brokers)
        topic = FakeTopic(
            topic_id=UUID(int=len(self.topics) + 1),
            logs=[FakeLog() for _ in range(partitions)],
            leaders=[nodes[index % len(nodes)] for index in range(partitions)],
            epochs=[0] * partitions,
        )
        self.topics[name] = topic
        return topic

    def write(self, topic: str, partition: int, *values: bytes, timestamp_ms: int = 1_000, **kind: Any) -> None:
        """Append one batch, as some producer would have."""
        builder = BatchBuilder(**kind)
        for number, value in enumerate(values):
            builder.append(None, value, timestamp_ms=timestamp_ms + number)
        self.topics[topic].logs[partition].append(builder.build())

    def move(self, topic: str, partition: int, node: int) -> None:
        self.topics[topic].leaders[partition] = node
        self.topics[topic].epochs[partition] += 1

    def asked(self, key: ApiKey) -> list[Any]:
        return [request for _, api_key, _, request in self.requests if api_key is key]

    def topic_of(self, name: str, topic_id: UUID) -> FakeTopic | None:
        if name:
            return self.topics.get(name)
        return next((topic for topic in self.topics.values() if topic.topic_id == topic_id), None)


class FakeBroker:
    """One node of the cluster."""

    def __init__(self, cluster: FakeCluster, node: int) -> None:
        self.cluster = cluster
        self.node = node
        self.address = Address(f"node{node}", 9092)
        self.connections: list[_Serving] = []
        self.start()

    def start(self) -> None:
        self._listener = self.cluster.network.listen(self.address.host, self.address.port, self._accept)

    def stop(self) -> None:
        """Refuse connections and break those there are."""
        self._listener.close()
        for connection in self.connections:
            connection.close()
        self.connections.clear()

    def _accept(self, socket: Socket) -> None:
        self.connections.append(_Serving(self, socket))

    def answer(self, key: ApiKey, request: Any) -> Any:
        handler = self.cluster.handlers.get(key) or getattr(self, f"_{key.name.lower()}")
        return handler(request) if key not in self.cluster.handlers else handler(request, self.node)

    def _api_versions(self, request: Any) -> ApiVersionsResponse:
        return ApiVersionsResponse(
            api_keys=[
                ApiVersion(api_key=key, min_version=versions.min, max_version=versions.max)
                for key, versions in self.cluster.versions.items()
            ],
            window_bytes=self.cluster.window_bytes,
        )

    def _metadata(self, request: MetadataRequest) -> MetadataResponse:
        cluster = self.cluster
        names = list(cluster.topics) if request.topics is None else [topic.name or "" for topic in request.topics]
        if request.allow_auto_topic_creation and cluster.auto_create:
            for name in names:
                if name not in cluster.topics:
                    cluster.create_topic(name, 3)
        return MetadataResponse(
            brokers=[
                MetadataResponseBroker(node_id=node, host=broker.address.host, port=broker.address.port)
                for node, broker in cluster.brokers.items()
            ],
            cluster_id="fake",
            controller_id=1,
            topics=[self._topic(name) for name in names],
        )

    def _topic(self, name: str) -> MetadataResponseTopic:
        topic = self.cluster.topics.get(name)
        if topic is None:
            return MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name=name)
        return MetadataResponseTopic(
            name=name,
            topic_id=topic.topic_id,
            partitions=[
                MetadataResponsePartition(
                    partition_index=index,
                    leader_id=leader,
                    leader_epoch=topic.epochs[index],
                    replica_nodes=[leader],
                    isr_nodes=[leader],
                )
                for index, leader in reversed(list(enumerate(topic.leaders)))
            ],
        )

    def _init_producer_id(self, request: Any) -> InitProducerIdResponse:
        self.cluster.producer_ids += 1
        return InitProducerIdResponse(producer_id=self.cluster.producer_ids, producer_epoch=0)

    def _produce(self, request: ProduceRequest) -> ProduceResponse:
        answer = ProduceResponse()
        for data in request.topic_data:
            topic = self.cluster.topic_of(data.name, data.topic_id)
            results = []
            for part in data.partition_data:
                code, base = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1
                if topic is not None:
                    code = ErrorCode.NOT_LEADER_OR_FOLLOWER
                    if topic.leaders[part.index] == self.node:
                        assert part.records is not None
                        code, base = topic.logs[part.index].append(bytes(part.records), topic.epochs[part.index])
                results.append(PartitionProduceResponse(index=part.index, error_code=code, base_offset=base))
            answer.responses.append(
                TopicProduceResponse(name=data.name, topic_id=data.topic_id, partition_responses=results)
            )
        return answer

    def _list_offsets(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        answer = ListOffsetsResponse()
        for asked in request.topics:
            topic = self.cluster.topics.get(asked.name)
            found = []
            for part in asked.partitions:
                if topic is None or topic.leaders[part.partition_index] != self.node:
                    code = ErrorCode.NOT_LEADER_OR_FOLLOWER
                    found.append(ListOffsetsPartitionResponse(partition_index=part.partition_index, error_code=code))
                    continue
                log = topic.logs[part.partition_index]
                offset, timestamp = -1, -1
                if part.timestamp == -2:
                    offset = log.start
                elif part.timestamp == -1:
                    offset = log.end
                else:
                    for record in log.records():
                        if record.timestamp >= part.timestamp:
                            offset, timestamp = record.offset, record.timestamp
                            break
                found.append(
                    ListOffsetsPartitionResponse(
                        partition_index=part.partition_index, offset=offset, timestamp=timestamp, leader_epoch=0
                    )
                )
            answer.topics.append(ListOffsetsTopicResponse(name=asked.name, partitions=found))
        return answer

    async def _fetch(self, request: FetchRequest) -> FetchResponse:
        deadline = asyncio.get_running_loop().time() + request.max_wait_ms / 1000
        while True:
            answer, size, failed = self._read(request)
            if size >= request.min_bytes or failed or asyncio.get_running_loop().time() >= deadline:
                return answer
            await asyncio.sleep(0.01)

    def _read(self, request: FetchRequest) -> tuple[FetchResponse, int, bool]:
        answer = FetchResponse()
        size = 0
        failed = False
        for asked in request.topics:
            topic = self.cluster.topic_of(asked.topic, asked.topic_id)
            parts = []
            for part in asked.partitions:
                data = PartitionData(partition_index=part.partition, high_watermark=0, records=b"")
                parts.append(data)
                if topic is None or topic.leaders[part.partition] != self.node:
                    data.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
                elif not topic.logs[part.partition].start <= part.fetch_offset <= topic.logs[part.partition].end:
                    data.error_code = ErrorCode.OFFSET_OUT_OF_RANGE
                else:
                    log = topic.logs[part.partition]
                    data.high_watermark = log.end
                    bytes_max = min(part.partition_max_bytes, request.max_bytes - size)
                    data.records = log.read(part.fetch_offset, bytes_max, at_least_one=size == 0)
                    size += len(data.records)
                    data.aborted_transactions = [
                        AbortedTransaction(producer_id=producer, first_offset=first) for producer, first in log.aborted
                    ]
                failed = failed or data.error_code != 0
            answer.responses.append(
                FetchableTopicResponse(topic=asked.topic, topic_id=asked.topic_id, partitions=parts)
            )
        return answer, size, failed


class _Serving:
    """One connection, its requests answered in order."""

    def __init__(self, broker: FakeBroker, socket: Socket) -> None:
        self._broker = broker
        self._socket = socket
        self._frames = FrameBuffer(64 * 1024 * 1024)
        self._queue: asyncio.Queue[bytes] = asyncio.Queue()
        self._outgoing = bytearray()
        self._closed = False
        self._task = asyncio.create_task(self._run())
        socket.on_readable(self._readable)

    def close(self) -> None:
        self._closed = True
        self._task.cancel()
        self._socket.close()

    def _readable(self) -> None:
        try:
            count = self._socket.receive_into(self._frames.room())
        except BlockingIOError:
            return
        if count == 0:
            self.close()
            return
        self._frames.received(count)
        for frame in self._frames.frames():
            self._queue.put_nowait(bytes(frame))

    async def _run(self) -> None:
        while not self._closed:  # what came behind a dropped request is dropped with it
            await self._serve(await self._queue.get())

    async def _serve(self, frame: bytes) -> None:
        cluster = self._broker.cluster
        header, position = decode_request_header(memoryview(frame))
        api: Api = API_BY_KEY[header.api_key]
        versions = cluster.versions[api.key]
        if header.api_version not in versions and api.key is ApiKey.API_VERSIONS:
            refused = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
            self._reply(api, 0, header.correlation_id, refused)
            return
        assert header.api_version in versions, f"{api.name} version {header.api_version} was not offered"
        request, _ = decode(api.request, header.api_version, memoryview(frame), position)
        cluster.requests.append((self._broker.node, api.key, header.api_version, request))
        mishap = cluster.next_mishap(api.key)
        if mishap == "drop":
            self.close()
            return
        if mishap == "silence":
            await asyncio.get_running_loop().create_future()
        if mishap == "delay":
            await asyncio.sleep(1)
        answer = _refusal(request, mishap) if isinstance(mishap, ErrorCode) else self._broker.answer(api.key, request)
        if isinstance(answer, Awaitable):
            answer = await answer
        if mishap == "lose":
            self.close()
            return
        if api.key is not ApiKey.PRODUCE or request.acks != 0:
            self._reply(api, header.api_version, header.correlation_id, answer)

    def _reply(self, api: Api, version: int, correlation_id: int, answer: Any) -> None:
        parts = encode_response(api, version, correlation_id, answer)
        if self._broker.cluster.window_bytes:
            parts = with_window(api, version, parts, self._broker.cluster.window_bytes)
        self._outgoing += b"".join(parts)  # type: ignore[arg-type]
        self._write()

    def _write(self) -> None:
        try:
            while self._outgoing:
                del self._outgoing[: self._socket.send(self._outgoing)]
        except BlockingIOError:
            self._socket.on_writable(self._write)
            return
        except OSError:
            return
        self._socket.on_writable(None)


def _refusal(request: Any, code: ErrorCode) -> Any:
    """Answer with this error for all that was asked."""
    match request:
        case ProduceRequest():
            return ProduceResponse(
                responses=[
                    TopicProduceResponse(
                        name=topic.name,
                        topic_id=topic.topic_id,
                        partition_responses=[
                            PartitionProduceResponse(index=part.index, error_code=code, base_offset=-1)
                            for part in topic.partition_data
                        ],
                    )
                    for topic in request.topic_data
                ]
            )
        case FetchRequest():
            return FetchResponse(
                responses=[
                    FetchableTopicResponse(
                        topic=topic.topic,
                        topic_id=topic.topic_id,
                        partitions=[
                            PartitionData(partition_index=part.partition, error_code=code, records=b"")
                            for part in topic.partitions
                        ],
                    )
                    for topic in request.topics
                ]
            )
        case ListOffsetsRequest():
            return ListOffsetsResponse(
                topics=[
                    ListOffsetsTopicResponse(
                        name=topic.name,
                        partitions=[
                            ListOffsetsPartitionResponse(partition_index=part.partition_index, error_code=code)
                            for part in topic.partitions
                        ],
                    )
                    for topic in request.topics
                ]
            )
        case MetadataRequest():
            return MetadataResponse(
                brokers=[],
                topics=[MetadataResponseTopic(error_code=code, name=topic.name) for topic in request.topics or ()],
            )
        case _:
            return InitProducerIdResponse(error_code=code)
