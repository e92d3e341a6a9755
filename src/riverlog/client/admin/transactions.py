"""What an administrator does with transactions: list and describe them, find those that hang, abort them.

A part of Admin. A transaction hangs in a partition when it is open there and its coordinator does not know of it: no
marker will come, and readers of committed records wait behind it for ever. That is left behind by clients and brokers
that did not verify what they wrote (before KIP-890); a marker written by hand ends it.
"""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Final, TypeVar

from riverlog.client.arguments import checked_int64, checked_partition, checked_text, checked_texts
from riverlog.client.errors import KafkaError, failure
from riverlog.client.network.cluster import Cluster
from riverlog.client.network.coordinator import TransactionCoordinator
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NodeId, Offset, ProducerEpoch, ProducerId, TopicPartition
from riverlog.model.internal_topics import TRANSACTIONS_TOPIC
from riverlog.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)
from riverlog.wire.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from riverlog.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from riverlog.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from riverlog.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

T = TypeVar("T")

_SHORTEST_TIMEOUT_MS: Final = 1
"""Of the producer that takes over to abort, and writes nothing."""


@dataclass(frozen=True, slots=True)
class TransactionListing:
    """A transactional id as the list of all of them shows it."""

    transactional_id: str
    producer_id: ProducerId
    state: str
    coordinator: NodeId


@dataclass(frozen=True, slots=True)
class TransactionDescription:
    """A transactional id, and the transaction that it is in; `started_ms` is -1 where there is none."""

    transactional_id: str
    state: str
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    timeout_ms: int
    started_ms: int
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class ProducerDescription:
    """A producer that a partition remembers; `transaction_offset` is -1 where it has no transaction open there."""

    partition: TopicPartition
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    coordinator_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    transaction_offset: Offset


class TransactionAdmin:
    """The calls about transactions."""

    _cluster: Cluster
    _until_done: Callable[[Callable[[], Awaitable[T]]], Awaitable[T]]

    async def list_transactions(
        self,
        *,
        states: Iterable[str] = (),
        producer_ids: Iterable[int] = (),
        older_than_ms: int = -1,
        pattern: str | None = None,
    ) -> list[TransactionListing]:
        """List the transactional ids of all coordinators, by name; all filters must match."""
        request = ListTransactionsRequest(
            state_filters=checked_texts("a state", states),
            producer_id_filters=[checked_int64("a producer id", each, least=-1) for each in producer_ids],
            duration_filter=checked_int64("older_than_ms", older_than_ms, least=-1),
            transactional_id_pattern=None if pattern is None else checked_text("pattern", pattern),
        )

        async def attempt() -> list[TransactionListing]:
            found = []
            for node in sorted(self._cluster.brokers):
                response: ListTransactionsResponse = await self._cluster.ask(node, request)
                if response.error_code != ErrorCode.NONE:
                    raise failure(response.error_code, "the list of transactions")
                if response.unknown_state_filters:
                    names = ", ".join(response.unknown_state_filters)
                    raise KafkaError(ErrorCode.INVALID_REQUEST, f"transactions have no state {names}")
                found += [
                    TransactionListing(
                        each.transactional_id, ProducerId(each.producer_id), each.transaction_state, node
                    )
                    for each in response.transaction_states
                ]
            return sorted(found, key=lambda each: each.transactional_id)

        return await self._until_done(attempt)

    async def damaged_coordinators(self) -> list[TopicPartition]:
        """Name the partitions of which the coordinators have lost records: none of their ids is listed or can be used.

        Only riverlog nodes say so.
        """
        request = ListTransactionsRequest(state_filters=["Dead"])  # the ids themselves are not wanted

        async def attempt() -> list[TopicPartition]:
            damaged = []
            for node in sorted(self._cluster.brokers):
                response: ListTransactionsResponse = await self._cluster.ask(node, request)
                if response.error_code != ErrorCode.NONE:
                    raise failure(response.error_code, "the list of transactions")
                damaged += [TopicPartition(TRANSACTIONS_TOPIC, index) for index in response.damaged_partitions]
            return damaged

        return await self._until_done(attempt)

    async def describe_transaction(self, transactional_id: str) -> TransactionDescription:
        """Return what a transactional id is doing; KafkaError (TRANSACTIONAL_ID_NOT_FOUND) where there is none."""
        checked_text("a transactional id", transactional_id)
        request = DescribeTransactionsRequest(transactional_ids=[transactional_id])

        async def attempt() -> TransactionDescription:
            coordinator = TransactionCoordinator(self._cluster, transactional_id)
            response: DescribeTransactionsResponse = await coordinator.ask(request)
            found = response.transaction_states[0]
            if found.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                raise KafkaError(
                    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, f"there is no transactional id {transactional_id!r}"
                )
            if found.error_code != ErrorCode.NONE:
                raise failure(found.error_code, f"the transactional id {transactional_id!r}")
            return TransactionDescription(
                transactional_id=found.transactional_id,
                state=found.transaction_state,
                producer_id=ProducerId(found.producer_id),
                producer_epoch=ProducerEpoch(found.producer_epoch),
                timeout_ms=found.transaction_timeout_ms,
                started_ms=found.transaction_start_time_ms,
                partitions=tuple(
                    TopicPartition(topic.topic, index) for topic in found.topics for index in sorted(topic.partitions)
                ),
            )

        return await self._until_done(attempt)

    async def abort_transaction(self, transactional_id: str) -> None:
        """Abort what a transactional id has open; whoever writes with it is fenced."""
        await self.describe_transaction(transactional_id)  # an id that is not there must not come into being
        request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=_SHORTEST_TIMEOUT_MS)

        async def attempt() -> None:
            coordinator = TransactionCoordinator(self._cluster, transactional_id)
            response: InitProducerIdResponse = await coordinator.ask(request)
            if response.error_code != ErrorCode.NONE:
                raise failure(response.error_code, f"the transactional id {transactional_id!r}")

        await self._until_done(attempt)

    async def describe_producers(self, partitions: Iterable[TopicPartition]) -> list[ProducerDescription]:
        """Return the producers that partitions remember, as their leaders do."""
        wanted = sorted(checked_partition(partition) for partition in partitions)

        async def attempt() -> list[ProducerDescription]:
            found: list[ProducerDescription] = []
            for leader, theirs in (await self._by_leader(wanted)).items():
                found += await self._producers_at(leader, theirs)
            return sorted(found, key=lambda each: (each.partition, each.producer_id))

        return await self._until_done(attempt)

    async def hung_transactions(
        self, partitions: Iterable[TopicPartition], *, older_than_ms: int
    ) -> list[ProducerDescription]:
        """Return the transactions that are open in partitions without their coordinators' knowledge.

        Those that wrote something within `older_than_ms` are passed over: they may be about to end.
        """
        checked_int64("older_than_ms", older_than_ms)
        now_ms = self._cluster.ports.clock.wall_ms()
        suspects = [
            each
            for each in await self.describe_producers(partitions)
            if each.transaction_offset >= 0 and now_ms - each.last_timestamp_ms >= older_than_ms
        ]
        return [each for each in suspects if await self.transaction_of(each) is None]

    async def transaction_of(self, producer: ProducerDescription) -> TransactionListing | None:
        """Find whose coordinator will end what a producer has open in a partition; None where none will.

        Members of a shared transaction have producer ids of their own, and are found under the id that they share.
        """
        for listed in await self.list_transactions(producer_ids=[producer.producer_id]):
            known = await self.describe_transaction(listed.transactional_id)
            if producer.partition in known.partitions:
                return listed
        return None

    async def abort_in_partition(self, producer: ProducerDescription) -> None:
        """Write the marker that ends a producer's transaction in one partition, and in no other."""
        marker = WritableTxnMarker(
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            transaction_result=False,
            topics=[
                WritableTxnMarkerTopic(name=producer.partition.topic, partition_indexes=[producer.partition.partition])
            ],
            coordinator_epoch=max(0, producer.coordinator_epoch),
        )

        async def attempt() -> None:
            (leader,) = await self._by_leader([producer.partition])
            response: WriteTxnMarkersResponse = await self._cluster.ask(
                leader, WriteTxnMarkersRequest(markers=[marker])
            )
            for topic in response.markers[0].topics:
                for entry in topic.partitions:
                    if entry.error_code != ErrorCode.NONE:
                        raise failure(entry.error_code, f"a marker in {producer.partition}")

        await self._until_done(attempt)

    async def _by_leader(self, partitions: list[TopicPartition]) -> dict[NodeId, list[TopicPartition]]:
        found: dict[NodeId, list[TopicPartition]] = {}
        for partition in partitions:
            topic = await self._cluster.topic(partition.topic)
            if partition.partition >= len(topic.partitions):
                raise KafkaError(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                    f"topic {topic.name!r} has partitions 0 to {len(topic.partitions) - 1}, not {partition.partition}",
                )
            leader = self._cluster.leader_of(partition)
            if leader is None:
                await self._cluster.refresh()
                raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{partition} has no leader now")
            found.setdefault(leader, []).append(partition)
        return found

    async def _producers_at(self, leader: NodeId, partitions: list[TopicPartition]) -> list[ProducerDescription]:
        request = DescribeProducersRequest(
            topics=[
                TopicRequest(name=topic, partition_indexes=[each.partition for each in group])
                for topic, group in groupby(partitions, key=lambda partition: partition.topic)
            ]
        )
        response: DescribeProducersResponse = await self._cluster.ask(leader, request)
        found: list[ProducerDescription] = []
        for topic in response.topics:
            for entry in topic.partitions:
                partition = TopicPartition(topic.name, entry.partition_index)
                if entry.error_code != ErrorCode.NONE:
                    raise failure(entry.error_code, f"the producers of {partition}", entry.error_message)
                found += [
                    ProducerDescription(
                        partition,
                        ProducerId(each.producer_id),
                        ProducerEpoch(each.producer_epoch),
                        each.coordinator_epoch,
                        each.last_sequence,
                        each.last_timestamp,
                        Offset(each.current_txn_start_offset),
                    )
                    for each in entry.active_producers
                ]
        return found
