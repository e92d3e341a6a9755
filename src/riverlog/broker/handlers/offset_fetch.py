"""OffsetFetch: how far groups have come, in the topics that are named or in all."""

import asyncio
from collections.abc import Sequence
from typing import Final

from riverlog.broker.coordinator_requests import ask_group
from riverlog.broker.requests.context import Context, HandlerResult, Later
from riverlog.groups.commands import FetchOffsets, FetchOffsetsReply, OffsetsOfTopic
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NO_OFFSET, NO_TOPIC_ID
from riverlog.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)

_FIRST_VERSION_WITH_ERROR: Final = 2
_FIRST_VERSION_WITH_MANY_GROUPS: Final = 8
_FIRST_VERSION_WITH_TOPIC_IDS: Final = 10


def offset_fetch(request: OffsetFetchRequest, context: Context) -> HandlerResult[OffsetFetchResponse]:
    """Ask the coordinator of each group."""
    groups = request.groups
    if context.version < _FIRST_VERSION_WITH_MANY_GROUPS:
        groups = [OffsetFetchRequestGroup(request.group_id, topics=request.topics)]
    fetches = [_Fetch(group, context, require_stable=request.require_stable) for group in groups]
    if all(fetch.reply.done() for fetch in fetches):
        return _response(fetches, context)
    return Later(_response_later(fetches, context))


async def _response_later(fetches: "Sequence[_Fetch]", context: Context) -> OffsetFetchResponse:
    await asyncio.wait([fetch.reply for fetch in fetches])
    return _response(fetches, context)


def _response(fetches: "Sequence[_Fetch]", context: Context) -> OffsetFetchResponse:
    answers = [fetch.answer() for fetch in fetches]
    if context.version >= _FIRST_VERSION_WITH_MANY_GROUPS:
        return OffsetFetchResponse(groups=answers)
    (one,) = answers
    return OffsetFetchResponse(topics=one.topics, error_code=one.error_code)


class _Fetch:
    """One group's part of a request: what was asked, and what becomes of it."""

    def __init__(self, asked: OffsetFetchRequestGroup, context: Context, *, require_stable: bool) -> None:
        self._asked = asked
        self._context = context
        self._refused: dict[int, ErrorCode] = {}  # by the topic's position in the request
        topics = None
        if asked.topics is not None:
            named = [self._find(position, each) for position, each in enumerate(asked.topics)]
            topics = tuple(each for each in named if each is not None)
        command = FetchOffsets(asked.group_id, topics, require_stable, asked.member_id, asked.member_epoch)
        self.reply = ask_group(context, Operation.DESCRIBE, asked.group_id, command)

    def answer(self) -> OffsetFetchResponseGroup:
        """Return the group's offsets; the reply is there."""
        try:
            reply = self.reply.result()
        except Refusal as refusal:
            reply = FetchOffsetsReply(refusal.code)
        if reply.code is not ErrorCode.NONE:
            self._context.stats.failed(reply.code)
            # The first version has no other place for the error than the partitions.
            topics = [] if self._context.version >= _FIRST_VERSION_WITH_ERROR else self._all_refused(reply.code)
            return OffsetFetchResponseGroup(self._asked.group_id, topics, reply.code)
        topics = self._everything(reply) if self._asked.topics is None else self._named(reply)
        return OffsetFetchResponseGroup(self._asked.group_id, topics)

    def _find(self, position: int, asked: OffsetFetchRequestTopic) -> OffsetsOfTopic | None:
        """Return what to ask the coordinator for a topic, or note why nothing."""
        by_id = self._context.version >= _FIRST_VERSION_WITH_TOPIC_IDS
        image = self._context.image
        topic = image.topic_by_id(asked.topic_id) if by_id else image.topic(asked.name)
        name = asked.name if topic is None else topic.name
        if by_id and topic is None:
            self._refused[position] = ErrorCode.UNKNOWN_TOPIC_ID
        elif not self._context.allows_on_topic(Operation.DESCRIBE, name):
            self._refused[position] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        else:
            # What was committed for an earlier topic of the same name is not meant.
            return OffsetsOfTopic(name, tuple(asked.partition_indexes), NO_TOPIC_ID if topic is None else topic.id)
        self._context.stats.failed(self._refused[position])
        return None

    def _named(self, reply: FetchOffsetsReply) -> list[OffsetFetchResponseTopic]:
        """Return the topics in the order in which they were asked for."""
        found = iter(_partitions(reply))
        return [
            OffsetFetchResponseTopic(
                topic.topic_id,
                topic.name,
                [next(found) for _ in topic.partition_indexes]
                if position not in self._refused
                else _refused(topic, self._refused[position]),
            )
            for position, topic in enumerate(self._asked.topics or ())
        ]

    def _everything(self, reply: FetchOffsetsReply) -> list[OffsetFetchResponseTopic]:
        """Return all topics that the client may see; by id, only those that still exist."""
        topics: dict[str, OffsetFetchResponseTopic] = {}
        for each, partition in zip(reply.offsets, _partitions(reply), strict=True):
            known = self._context.image.topic(each.topic)
            if known is None and self._context.version >= _FIRST_VERSION_WITH_TOPIC_IDS:
                continue
            if known is not None and each.topic_id not in (NO_TOPIC_ID, known.id):
                continue  # committed for an earlier topic of the same name
            if not self._context.allows_on_topic(Operation.DESCRIBE, each.topic):
                continue
            topic_id = NO_TOPIC_ID if known is None else known.id
            topic = topics.setdefault(each.topic, OffsetFetchResponseTopic(topic_id, each.topic))
            topic.partitions.append(partition)
        return list(topics.values())

    def _all_refused(self, code: ErrorCode) -> list[OffsetFetchResponseTopic]:
        return [
            OffsetFetchResponseTopic(topic.topic_id, topic.name, _refused(topic, code))
            for topic in self._asked.topics or ()
        ]


def _partitions(reply: FetchOffsetsReply) -> list[OffsetFetchResponsePartition]:
    return [
        OffsetFetchResponsePartition(each.partition, each.offset, each.leader_epoch, each.metadata, each.code)
        for each in reply.offsets
    ]


def _refused(topic: OffsetFetchRequestTopic, code: ErrorCode) -> list[OffsetFetchResponsePartition]:
    return [
        OffsetFetchResponsePartition(index, NO_OFFSET, metadata="", error_code=code)
        for index in topic.partition_indexes
    ]
