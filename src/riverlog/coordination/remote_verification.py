"""Asking the coordinator of a transaction on another broker whether a partition belongs to it (AddPartitionsToTxn).

Questions for one broker share requests, one of which is under way at a time (KIP-890). Where no answer comes the
producer is told to try again.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from riverlog.client.errors import error_code
from riverlog.controller.peers import Lane
from riverlog.controller.quorum_ports import NoResponse
from riverlog.coordination.broker_requests import BrokerRequests, RequestQueue
from riverlog.coordination.limits import VERIFICATION_RESPONSE_SECONDS_MAX, VERIFIED_PER_REQUEST_MAX
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NodeId, TopicPartition
from riverlog.model.transactions import ProducerIdentity
from riverlog.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)


class Asked(NamedTuple):
    """A transaction, as its producer names it, and what is asked about it."""

    transactional_id: str
    producer: ProducerIdentity
    adds: bool


class Unsent(NamedTuple):
    """A question that was not sent yet, and who waits for the answer."""

    asked: Asked
    partition: TopicPartition
    answer: "asyncio.Future[ErrorCode]"


@dataclass(slots=True)
class Batch:
    """The questions of one request: one transaction for each transactional id, since answers go by it."""

    by_id: dict[str, Asked] = field(default_factory=dict)
    partitions: dict[str, dict[TopicPartition, list["asyncio.Future[ErrorCode]"]]] = field(default_factory=dict)
    size: int = 0

    def take(self, unsent: Unsent) -> bool:
        """Take a question, if it goes into this request."""
        known = self.by_id.setdefault(unsent.asked.transactional_id, unsent.asked)
        if known != unsent.asked or self.size >= VERIFIED_PER_REQUEST_MAX:
            return False
        by_partition = self.partitions.setdefault(unsent.asked.transactional_id, {})
        by_partition.setdefault(unsent.partition, []).append(unsent.answer)
        self.size += 1
        return True

    def request(self) -> AddPartitionsToTxnRequest:
        return AddPartitionsToTxnRequest(
            [
                AddPartitionsToTxnTransaction(
                    transactional_id,
                    self.by_id[transactional_id].producer.id,
                    self.by_id[transactional_id].producer.epoch,
                    verify_only=not self.by_id[transactional_id].adds,
                    topics=_topics(partitions),
                )
                for transactional_id, partitions in self.partitions.items()
            ]
        )

    def settle(self, told: Mapping[tuple[str, TopicPartition], ErrorCode], otherwise: ErrorCode) -> None:
        """Answer everybody."""
        for transactional_id, partitions in self.partitions.items():
            for name, answers in partitions.items():
                code = told.get((transactional_id, name), otherwise)
                for answer in answers:
                    if not answer.done():
                        answer.set_result(code)


class RemoteVerification:
    """Asks coordinators on other brokers."""

    def __init__(self, brokers: BrokerRequests) -> None:
        self._brokers = brokers
        self._queues: dict[NodeId, RequestQueue[Unsent]] = {}

    def verify(
        self,
        node_id: NodeId,
        transactional_id: str,
        producer: ProducerIdentity,
        partition: TopicPartition,
        *,
        adds: bool,
    ) -> "asyncio.Future[ErrorCode]":
        """Find out from a broker whether the partition belongs to the producer's open transaction; with `adds`, make it
        so first."""
        queue = self._queues.get(node_id)
        if queue is None:
            queue = self._queues[node_id] = RequestQueue(partial(self._send, node_id))
        answer: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()
        queue.put(Unsent(Asked(transactional_id, producer, adds), partition, answer))
        return answer

    def close(self) -> None:
        """Ask nothing more."""
        for queue in self._queues.values():
            queue.close()

    async def _send(self, node_id: NodeId, unsent: Sequence[Unsent]) -> Sequence[Unsent]:
        """Send as many as go into one request; return the others."""
        batch = Batch()
        left = [each for each in unsent if not each.answer.done() and not batch.take(each)]
        if not batch.size:
            return left
        try:
            response = await self._brokers.ask(
                node_id, batch.request(), Lane.VERIFICATION, seconds=VERIFICATION_RESPONSE_SECONDS_MAX
            )
            batch.settle(
                dict(codes_in(response)), error_code(response.error_code) or ErrorCode.COORDINATOR_NOT_AVAILABLE
            )
        except NoResponse:
            batch.settle({}, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return left


def _topics(partitions: Iterable[TopicPartition]) -> list[AddPartitionsToTxnTopic]:
    by_topic: dict[str, list[int]] = {}
    for name in partitions:
        by_topic.setdefault(name.topic, []).append(name.partition)
    return [AddPartitionsToTxnTopic(topic, indexes) for topic, indexes in by_topic.items()]


def codes_in(response: AddPartitionsToTxnResponse) -> Iterable[tuple[tuple[str, TopicPartition], ErrorCode]]:
    """Return the answers by transactional id and partition."""
    for result in response.results_by_transaction:
        for topic in result.topic_results:
            for each in topic.results_by_partition:
                name = result.transactional_id, TopicPartition(topic.name, each.partition_index)
                code = error_code(each.partition_error_code)
                # Another partition of the request was refused: nothing is known about this one.
                yield name, ErrorCode.COORDINATOR_NOT_AVAILABLE if code is ErrorCode.OPERATION_NOT_ATTEMPTED else code
