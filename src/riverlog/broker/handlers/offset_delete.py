"""OffsetDelete: forget how far a group has come in partitions that it does not read any more."""

from collections.abc import Iterator

from riverlog.broker.coordinator_requests import ask_coordinator
from riverlog.broker.limits import REQUEST_PORTION
from riverlog.broker.requests.context import Context, HandlerResult, Later
from riverlog.broker.requests.portions import in_turns
from riverlog.groups.commands import CodesReply, DeleteOffsets
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicPartition
from riverlog.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


def offset_delete(request: OffsetDeleteRequest, context: Context) -> HandlerResult[OffsetDeleteResponse]:
    """Ask the coordinator about the partitions that exist and may be read."""
    if sum(1 + len(topic.partitions) for topic in request.topics) > REQUEST_PORTION:
        return Later(_in_turns(request, context), holds_line=True)
    checking = _Checking(context)
    for topic, part in _each(request):
        checking.check(topic, part)
    return checking.ask(request)


async def _in_turns(request: OffsetDeleteRequest, context: Context) -> OffsetDeleteResponse:
    """Check the partitions of a large request while others have their turn; all are decided about at once."""
    checking = _Checking(context)
    async for topic, part in in_turns(_each(request)):
        checking.check(topic, part)
    answer = checking.ask(request)
    if isinstance(answer, Later):
        return await answer.response
    assert isinstance(answer, OffsetDeleteResponse)
    return answer


def _each(
    request: OffsetDeleteRequest,
) -> Iterator[tuple[OffsetDeleteRequestTopic, OffsetDeleteRequestPartition | None]]:
    """Name each topic, and then each of its partitions."""
    for topic in request.topics:
        yield topic, None
        for part in topic.partitions:
            yield topic, part


class _Checking:
    """Finds the partitions that the coordinator is to be asked about, and refuses the others."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._response = OffsetDeleteResponse()
        self._partitions: list[TopicPartition] = []
        self._asked: list[OffsetDeleteResponsePartition] = []

    def check(self, topic: OffsetDeleteRequestTopic, part: OffsetDeleteRequestPartition | None) -> None:
        """Begin a topic, or take the next of its partitions."""
        if part is None:
            self._response.topics.append(OffsetDeleteResponseTopic(topic.name, []))
            return
        partition = TopicPartition(topic.name, part.partition_index)
        code = _why_not(partition, self._context)
        answer = OffsetDeleteResponsePartition(part.partition_index, code)
        self._response.topics[-1].partitions.append(answer)
        if code is not ErrorCode.NONE:
            self._context.stats.failed(code)
            return
        self._asked.append(answer)
        self._partitions.append(partition)

    def ask(self, request: OffsetDeleteRequest) -> HandlerResult[OffsetDeleteResponse]:
        """Ask the coordinator to forget what may be forgotten."""
        return ask_coordinator(
            self._context,
            Operation.DELETE,
            request.group_id,
            DeleteOffsets(request.group_id, tuple(self._partitions)),
            answer=self._decided,
            refuse=lambda code: OffsetDeleteResponse(error_code=code),
        )

    def _decided(self, reply: CodesReply) -> OffsetDeleteResponse:
        if reply.code is not ErrorCode.NONE:
            self._context.stats.failed(reply.code)
            return OffsetDeleteResponse(error_code=reply.code)
        for answer, code in zip(self._asked, reply.codes, strict=True):
            answer.error_code = code
            self._context.stats.failed(code)
        return self._response


def _why_not(partition: TopicPartition, context: Context) -> ErrorCode:
    if not context.allows_on_topic(Operation.READ, partition.topic):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    topic = context.image.topic(partition.topic)
    exists = topic is not None and 0 <= partition.partition < topic.partition_count
    return ErrorCode.NONE if exists else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
