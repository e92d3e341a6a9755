"""Offsets that the owner of a batch commits for a group which another broker coordinates (TxnOffsetCommit)."""

from typing import TYPE_CHECKING

from riverlog.client.errors import error_code
from riverlog.controller.peers import Lane
from riverlog.controller.quorum_ports import NoResponse
from riverlog.coordination.broker_requests import BrokerRequests
from riverlog.coordination.limits import OFFSETS_RESPONSE_SECONDS_MAX
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NodeId
from riverlog.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)

if TYPE_CHECKING:
    from riverlog.groups.commands import CodesReply, CommitOffsets

_ASK_AGAIN = frozenset((ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))


class RemoteOffsets:
    """Commits offsets in transactions on other brokers."""

    def __init__(self, brokers: BrokerRequests) -> None:
        self._brokers = brokers

    async def commit(self, node_id: NodeId, transactional_id: str, command: "CommitOffsets") -> "CodesReply":
        """Store offsets in the group until the transaction ends, whose coordinator that broker asks.

        Refusal where that broker did not answer, or does not coordinate the group any more: it may be done again.
        """
        from riverlog.groups.commands import CodesReply

        try:
            response = await self._brokers.ask(
                node_id, _request(transactional_id, command), Lane.OFFSETS, seconds=OFFSETS_RESPONSE_SECONDS_MAX
            )
        except NoResponse as error:
            raise Refusal(
                ErrorCode.COORDINATOR_NOT_AVAILABLE, f"The coordinator of {command.group_id!r} does not answer: {error}"
            ) from error
        told = _codes(response)
        codes = tuple(
            told.get((each.topic, each.partition), ErrorCode.UNKNOWN_SERVER_ERROR) for each in command.offsets
        )
        if not _ASK_AGAIN.isdisjoint(codes):
            raise Refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"The group {command.group_id!r} is moving; try again.")
        return CodesReply(codes=codes)


def _request(transactional_id: str, command: "CommitOffsets") -> TxnOffsetCommitRequest:
    assert command.producer is not None
    by_topic: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
    for each in command.offsets:
        by_topic.setdefault(each.topic, []).append(
            TxnOffsetCommitRequestPartition(each.partition, each.offset, each.leader_epoch, each.metadata)
        )
    return TxnOffsetCommitRequest(
        transactional_id,
        command.group_id,
        command.producer.id,
        command.producer.epoch,
        topics=[TxnOffsetCommitRequestTopic(topic, partitions) for topic, partitions in by_topic.items()],
        needs_empty_group=command.needs_empty_group,
    )


def _codes(response: TxnOffsetCommitResponse) -> dict[tuple[str, int], ErrorCode]:
    return {
        (topic.name, each.partition_index): error_code(each.error_code)
        for topic in response.topics
        for each in topic.partitions
    }
