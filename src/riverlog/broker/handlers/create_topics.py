"""CreateTopics: the controller decides about each topic on its own; the answer describes what came into being."""

from riverlog.broker.requests.context import Context
from riverlog.metadata.commands.outcome import Outcome
from riverlog.metadata.commands.partitions import Assignment
from riverlog.metadata.commands.topics import CreateTopics, TopicCreation, TopicCreationReply
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NodeId
from riverlog.model.limits import PARTITIONS_PER_REQUEST_MAX
from riverlog.model.resolution import SettingDescription, describe_topic
from riverlog.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)


async def create_topics(request: CreateTopicsRequest, context: Context) -> CreateTopicsResponse:
    """Hand the well-formed topics to the controller; refuse the others here. Answers keep the request's order.

    More than could be created whatever they are like are refused together: to look at each would take long.
    """
    if len(request.topics) > PARTITIONS_PER_REQUEST_MAX:
        message = f"{len(request.topics)} topics are too many: one request can create {PARTITIONS_PER_REQUEST_MAX}."
        outcome = Outcome(ErrorCode.INVALID_PARTITIONS, message)
        return CreateTopicsResponse(topics=[_refused(topic.name, outcome, context) for topic in request.topics])
    results: list[CreatableTopicResult | None] = []
    wanted: list[TopicCreation] = []
    for topic in request.topics:
        try:
            wanted.append(_new_topic(topic, context))
            results.append(None)
        except Refusal as refusal:
            results.append(_refused(topic.name, Outcome.of(refusal), context))
    decided = iter(await _create(wanted, request, context))
    return CreateTopicsResponse(topics=[next(decided) if result is None else result for result in results])


async def _create(
    wanted: list[TopicCreation], request: CreateTopicsRequest, context: Context
) -> list[CreatableTopicResult]:
    if not wanted:
        return []
    try:
        created = await context.services.controller.submit(CreateTopics(tuple(wanted), request.validate_only))
    except Refusal as refusal:
        return [_refused(new.name, Outcome.of(refusal), context) for new in wanted]
    return [_result(each, context) for each in created.topics]


def _new_topic(topic: CreatableTopic, context: Context) -> TopicCreation:
    allowed = context.allows_on_cluster(Operation.CREATE) or context.allows_on_topic(Operation.CREATE, topic.name)
    if not allowed:
        raise Refusal(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"Not allowed to create the topic {topic.name!r}.")
    return TopicCreation(
        name=topic.name,
        id=context.services.new_topic_id(),
        partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignments=_assignments(topic),
        configs={config.name: config.value for config in topic.configs},
    )


def _assignments(topic: CreatableTopic) -> tuple[Assignment, ...]:
    """Return the replicas in the order of partitions, which must be 0, 1, 2 and so on."""
    ordered = sorted(topic.assignments, key=lambda each: each.partition_index)
    if [each.partition_index for each in ordered] != list(range(len(ordered))):
        raise Refusal(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Replicas must be assigned to the partitions 0, 1, 2 and so on, each once.",
        )
    return tuple(tuple(NodeId(broker_id) for broker_id in each.broker_ids) for each in ordered)


def _refused(name: str, outcome: Outcome, context: Context) -> CreatableTopicResult:
    context.stats.failed(outcome.code)
    return CreatableTopicResult(name=name, error_code=outcome.code, error_message=outcome.message)


def _result(created: TopicCreationReply, context: Context) -> CreatableTopicResult:
    topic = created.topic
    if topic is None:
        return _refused(created.name, created.outcome, context)
    if not context.allows_on_topic(Operation.DESCRIBE_CONFIGS, topic.name):
        hidden = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return CreatableTopicResult(name=topic.name, topic_id=topic.id, topic_config_error_code=hidden)
    layers = context.services.metadata.settings.layers
    described = describe_topic(created.configs, layers, replication_factor=topic.replication_factor)
    return CreatableTopicResult(
        name=topic.name,
        topic_id=topic.id,
        num_partitions=topic.partition_count,
        replication_factor=topic.replication_factor,
        configs=[_config(each) for each in described],
    )


def _config(described: SettingDescription) -> CreatableTopicConfigs:
    return CreatableTopicConfigs(
        name=described.name,
        value=None if described.setting.sensitive else described.text,
        read_only=described.read_only,
        config_source=described.source,
        is_sensitive=described.setting.sensitive,
    )
