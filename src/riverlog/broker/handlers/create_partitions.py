"""CreatePartitions: more partitions for topics; there is no way back."""

import asyncio

from riverlog.broker.limits import TOPICS_CREATED_PER_TURN_MAX
from riverlog.broker.requests.context import Context
from riverlog.broker.requests.portions import in_turns
from riverlog.metadata.commands.outcome import Outcome, named_twice, repeats
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
    """Submit the topics that the client may alter to the controller; answers keep the request's order."""
    topics = request.topics
    repeated = repeats(topic.name for topic in topics)
    outcomes: dict[str, Outcome] = {name: Outcome.of(named_twice(name)) for name in repeated}
    for start in range(0, len(topics), TOPICS_CREATED_PER_TURN_MAX):
        portion = [
            topic
            for topic in topics[start : start + TOPICS_CREATED_PER_TURN_MAX]
            if topic.name not in outcomes and context.allows_on_topic(Operation.ALTER, topic.name)
        ]
        decided = await _create(portion, context, validate_only=request.validate_only)
        outcomes |= {topic.name: outcome for topic, outcome in zip(portion, decided, strict=True)}
        await asyncio.sleep(0)
    return CreatePartitionsResponse(
        results=[
            _result(topic, outcomes.get(topic.name) or _not_allowed(topic), context) async for topic in in_turns(topics)
        ]
    )


async def _create(topics: list[CreatePartitionsTopic], context: Context, *, validate_only: bool) -> list[Outcome]:
    if not topics:
        return []
    command = CreatePartitions(tuple(_new_partitions(topic) for topic in topics), validate_only)
    try:
        return list((await context.services.controller.submit(command)).outcomes)
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
    context.stats.failed(outcome.code)
    return CreatePartitionsTopicResult(name=topic.name, error_code=outcome.code, error_message=outcome.message)
