"""CreatePartitions: more partitions for topics; there is no way back."""

from itertools import compress

from riverlog.broker.context import Context
from riverlog.metadata.commands.outcome import Outcome
from riverlog.metadata.commands.partitions import CreatePartitions, NewPartitions
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NodeId
from riverlog.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)


async def create_partitions(request: CreatePartitionsRequest, context: Context) -> CreatePartitionsResponse:
    """Let the controller decide about the topics that the client may alter; answers keep the request's order."""
    allowed = [context.allows_on_topic(Operation.ALTER, topic.name) for topic in request.topics]
    outcomes = iter(await _create(list(compress(request.topics, allowed)), request, context))
    return CreatePartitionsResponse(
        results=[
            _result(topic, next(outcomes) if may_alter else _not_allowed(topic), context)
            for topic, may_alter in zip(request.topics, allowed, strict=True)
        ]
    )


async def _create(
    topics: list[CreatePartitionsTopic], request: CreatePartitionsRequest, context: Context
) -> list[Outcome]:
    if not topics:
        return []
    command = CreatePartitions(tuple(_new_partitions(topic) for topic in topics), request.validate_only)
    try:
        return list((await context.services.metadata.submit(command)).outcomes)
    except Refusal as refusal:
        return [Outcome.of(refusal)] * len(topics)


def _new_partitions(topic: CreatePartitionsTopic) -> NewPartitions:
    if topic.assignments is None:
        return NewPartitions(topic.name, topic.count)
    assigned = tuple(tuple(NodeId(broker_id) for broker_id in each.broker_ids) for each in topic.assignments)
    return NewPartitions(topic.name, topic.count, assigned)


def _not_allowed(topic: CreatePartitionsTopic) -> Outcome:
    return Outcome(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"Not allowed to alter the topic {topic.name!r}.")


def _result(topic: CreatePartitionsTopic, outcome: Outcome, context: Context) -> CreatePartitionsTopicResult:
    if outcome.code is not ErrorCode.NONE:
        context.stats.failed(outcome.code)
    return CreatePartitionsTopicResult(name=topic.name, error_code=outcome.code, error_message=outcome.message)
