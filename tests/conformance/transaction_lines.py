"""Transactions request by request, as no client lets one send them: what a broker answers, in a form that compares.

Producer ids are named in the order in which they appear. Answers that only say "not yet" are asked for again, so that
what is left depends on the rules and not on the pace of a broker.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from riverlog.client.network.connection import Connection
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import Address, ProducerEpoch, ProducerId
from riverlog.records.record import BatchBuilder
from riverlog.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from riverlog.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from riverlog.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from riverlog.wire.messages.describe_transactions import DescribeTransactionsRequest
from riverlog.wire.messages.end_txn import EndTxnRequest
from riverlog.wire.messages.find_coordinator import FindCoordinatorRequest
from riverlog.wire.messages.init_producer_id import InitProducerIdRequest
from riverlog.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from riverlog.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from riverlog.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from riverlog.wire.messages.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from riverlog.world.network import TcpNetwork
from tests.conformance.adapters import WAIT_SECONDS_MAX, Deadline

PAUSE_SECONDS: Final = 0.02
PARTITIONS: Final = 2
NOT_YET: Final = frozenset(
    (
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    )
)


class Writer(NamedTuple):
    """A producer id and epoch."""

    id: int
    epoch: int

    def moved(self, epochs: int) -> "Writer":
        """Return the same producer so many epochs later, or earlier."""
        return Writer(self.id, self.epoch + epochs)


NOBODY: Final = Writer(-1, -1)


class Talk:
    """One transactional id at one broker, and all that was said about it."""

    def __init__(self, connection: Connection, name: str) -> None:
        self.said: list[str] = []
        self._connection = connection
        self._name = name
        self._group = f"{name}-group"
        self._ids: dict[int, str] = {}

    @classmethod
    async def open(cls, address: Address, name: str) -> "Talk":
        """Connect, create the topic, and see that coordinators are there."""
        connection = await Connection.open(
            TcpNetwork(), address, client_id="talk", connect_seconds=WAIT_SECONDS_MAX, request_seconds=WAIT_SECONDS_MAX
        )
        talk = cls(connection, name)
        topic = CreatableTopic(name=name, num_partitions=PARTITIONS, replication_factor=1)
        await connection.request(CreateTopicsRequest(topics=[topic], timeout_ms=int(WAIT_SECONDS_MAX * 1000)))
        await talk._await_leaders()
        for kind, key in ((1, name), (0, talk._group)):
            request = FindCoordinatorRequest(key=key, key_type=kind, coordinator_keys=[key])
            await talk._settled(request, lambda found: [each.error_code for each in found.coordinators])
        return talk

    def close(self) -> None:
        self._connection.close()

    async def init(self, expected: Writer = NOBODY, *, timeout_ms: int = 60_000, version: int = 5) -> Writer:
        request = InitProducerIdRequest(self._name, timeout_ms, expected.id, expected.epoch)
        answer = await self._settled(request, _code, version)
        writer = Writer(answer.producer_id, answer.producer_epoch)
        self._say(f"init v{version} as {self._of(expected)}", answer.error_code, writer)
        return writer

    async def add(self, writer: Writer, *, partition: int = 0, topic: str | None = None, version: int = 3) -> None:
        topics = [AddPartitionsToTxnTopic(topic or self._name, [partition])]
        request = AddPartitionsToTxnRequest([], self._name, writer.id, writer.epoch, topics)
        answer = await self._settled(request, _added, version)
        self._say(f"add v{version} by {self._of(writer)}", *_added(answer))

    async def end(self, writer: Writer, *, commits: bool, version: int = 5) -> Writer:
        answer = await self._settled(EndTxnRequest(self._name, writer.id, writer.epoch, commits), _code, version)
        given = Writer(answer.producer_id, answer.producer_epoch)
        self._say(f"{'commit' if commits else 'abort'} v{version} by {self._of(writer)}", answer.error_code, given)
        await self._await_end()
        return given

    async def write(
        self, writer: Writer, sequence: int = 0, *, partition: int = 0, version: int = 12, transactional: bool = True
    ) -> None:
        builder = BatchBuilder(
            producer_id=ProducerId(writer.id),
            producer_epoch=ProducerEpoch(writer.epoch),
            base_sequence=sequence,
            transactional=transactional,
        )
        builder.append(None, b"value", timestamp_ms=1_700_000_000_000)
        data = PartitionProduceData(partition, memoryview(builder.build()))
        request = ProduceRequest(
            self._name if transactional else None, -1, 10_000, [TopicProduceData(self._name, partition_data=[data])]
        )
        answer = await self._settled(request, _produced, version)
        self._say(f"write v{version} {sequence} by {self._of(writer)}", *_produced(answer))

    async def add_offsets(self, writer: Writer, *, version: int = 4) -> None:
        request = AddOffsetsToTxnRequest(self._name, writer.id, writer.epoch, self._group)
        answer = await self._settled(request, _code, version)
        self._say(f"add offsets v{version} by {self._of(writer)}", answer.error_code)

    async def commit_offsets(self, writer: Writer, *, member: str = "", generation: int = -1, version: int = 5) -> None:
        offset = TxnOffsetCommitRequestPartition(0, 7, committed_metadata="")
        request = TxnOffsetCommitRequest(
            self._name,
            self._group,
            writer.id,
            writer.epoch,
            generation,
            member,
            topics=[TxnOffsetCommitRequestTopic(self._name, [offset])],
        )
        answer = await self._settled(request, _committed, version)
        self._say(f"commit offsets v{version} by {self._of(writer)}", *_committed(answer))

    async def mark(
        self, writer: Writer, *, commits: bool, coordinator_epoch: int, transaction_version: int, partition: int = 0
    ) -> None:
        topics = [WritableTxnMarkerTopic(self._name, [partition])]
        marker = WritableTxnMarker(writer.id, writer.epoch, commits, topics, coordinator_epoch, transaction_version)
        answer = await self._settled(WriteTxnMarkersRequest([marker]), _marked)
        what = f"mark {'commit' if commits else 'abort'} {coordinator_epoch} by rules {transaction_version}"
        self._say(f"{what} for {self._of(writer)}", *_marked(answer))

    async def describe(self) -> None:
        """Check where the transactional id stands."""
        (held,) = (await self._connection.request(DescribeTransactionsRequest([self._name]))).transaction_states
        writer = Writer(held.producer_id, held.producer_epoch)
        self._say(f"described as {held.transaction_state}", held.error_code, writer)

    async def await_state(self, state: str) -> None:
        """Wait until time has brought the transactional id there."""
        deadline = Deadline()
        while await self._state() != state:
            assert deadline.left(), f"{self._name} never was {state}"
            await asyncio.sleep(PAUSE_SECONDS)

    async def _await_leaders(self) -> None:
        """Wait until the new partitions answer; Kafka says that a topic is created some time before it is."""
        partitions = [ListOffsetsPartition(index, timestamp=-1) for index in range(PARTITIONS)]
        request = ListOffsetsRequest(topics=[ListOffsetsTopic(self._name, partitions)])
        deadline = Deadline()
        while any(each.error_code for each in (await self._connection.request(request)).topics[0].partitions):
            assert deadline.left(), f"{self._name} was not created"
            await asyncio.sleep(PAUSE_SECONDS)

    async def _await_end(self) -> None:
        deadline = Deadline()
        while (await self._state()).startswith("Prepare"):
            assert deadline.left(), "the markers were never written"
            await asyncio.sleep(PAUSE_SECONDS)

    async def _state(self) -> str:
        (held,) = (await self._connection.request(DescribeTransactionsRequest([self._name]))).transaction_states
        state: str = held.transaction_state
        return state

    async def _settled(self, request: object, codes: Any, version: int | None = None) -> Any:
        """Ask until the answer is more than "not yet"."""
        deadline = Deadline()
        while True:
            answer = await self._connection.request(request, version_max=version)
            if not NOT_YET.intersection(codes(answer)) or not deadline.left():
                return answer
            await asyncio.sleep(PAUSE_SECONDS)

    def _say(self, what: str, code: int, writer: Writer = NOBODY) -> None:
        given = "" if writer.id == -1 else f" {self._of(writer)}"
        self.said.append(f"{what}: {ErrorCode(code).name}{given}")

    def _of(self, writer: Writer) -> str:
        if writer.id == -1:
            return "nobody"
        name = self._ids.setdefault(writer.id, "ABCDEFG"[len(self._ids)])
        return f"{name}{writer.epoch}"


def _code(answer: Any) -> Sequence[int]:
    return [answer.error_code]


def _added(answer: Any) -> Sequence[int]:
    return [each.partition_error_code for each in answer.results_by_topic_v3_and_below[0].results_by_partition]


def _produced(answer: Any) -> Sequence[int]:
    return [answer.responses[0].partition_responses[0].error_code]


def _committed(answer: Any) -> Sequence[int]:
    return [answer.topics[0].partitions[0].error_code]


def _marked(answer: Any) -> Sequence[int]:
    return [answer.markers[0].topics[0].partitions[0].error_code]
