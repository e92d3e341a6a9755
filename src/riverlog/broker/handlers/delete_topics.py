"""DeleteTopics: by name or by id. Clients see the topics gone when the answer comes; the files follow."""

from collections import Counter

from riverlog.broker.requests.context import Context
from riverlog.metadata.commands.outcome import Outcome
from riverlog.metadata.commands.topics import DeleteTopics
from riverlog.metadata.image import TopicImage
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NO_TOPIC_ID
from riverlog.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)


async def delete_topics(request: DeleteTopicsRequest, context: Context) -> DeleteTopicsResponse:
    """Find what is meant, then let the controller decide; answers keep the request's order."""
    asked = [*request.topics, *(DeleteTopicState(name=name) for name in request.topic_names)]
    results: list[DeletableTopicResult] = []
    found: list[tuple[DeletableTopicResult, TopicImage]] = []
    for each in asked:
        result = DeletableTopicResult(name=each.name, topic_id=each.topic_id)
        results.append(result)
        try:
            topic = _find(each, context)
        except Refusal as refusal:
            _refuse(result, Outcome.of(refusal), context)
            continue
        result.name, result.topic_id = topic.name, topic.id
        found.append((result, topic))
    await _delete(_named_once(found, context), context)
    return DeleteTopicsResponse(responses=results)


def _named_once(
    found: list[tuple[DeletableTopicResult, TopicImage]], context: Context
) -> list[tuple[DeletableTopicResult, TopicImage]]:
    """Refuse whatever is named more than once, each time: it may not be what was meant."""
    mentions = Counter(topic.id for _, topic in found)
    for result, topic in found:
        if mentions[topic.id] > 1:
            message = f"The request names the topic {topic.name!r} more than once; it was not deleted."
            _refuse(result, Outcome(ErrorCode.INVALID_REQUEST, message), context)
    return [each for each in found if mentions[each[1].id] == 1]


async def _delete(found: list[tuple[DeletableTopicResult, TopicImage]], context: Context) -> None:
    if not found:
        return
    try:
        deleted = await context.services.controller.submit(DeleteTopics(tuple(topic.id for _, topic in found)))
    except Refusal as refusal:
        outcomes = [Outcome.of(refusal)] * len(found)
    else:
        outcomes = list(deleted.outcomes)
    for (result, _), outcome in zip(found, outcomes, strict=True):
        if outcome.code is not ErrorCode.NONE:
            _refuse(result, outcome, context)


def _find(asked: DeleteTopicState, context: Context) -> TopicImage:
    """Return the topic that is meant; whoever may not describe it does not learn that it exists."""
    by_id = asked.topic_id != NO_TOPIC_ID
    if by_id == (asked.name is not None):
        raise Refusal(ErrorCode.INVALID_REQUEST, "A topic is named either by its name or by its id.")
    if not context.services.metadata.settings.delete_topic_enable:
        raise Refusal(ErrorCode.TOPIC_DELETION_DISABLED, "Topics cannot be deleted here: delete.topic.enable is false.")
    topic = context.image.topic_by_id(asked.topic_id) if by_id else context.image.topic(asked.name or "")
    name = topic.name if topic is not None else asked.name
    if name is not None and not context.allows_on_topic(Operation.DESCRIBE, name):
        code = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.TOPIC_AUTHORIZATION_FAILED
        raise Refusal(code, "There is no such topic, or it may not be seen.")
    if topic is None:
        if by_id:
            raise Refusal(ErrorCode.UNKNOWN_TOPIC_ID, f"There is no topic with the id {asked.topic_id}.")
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {asked.name!r}.")
    if not context.allows_on_topic(Operation.DELETE, topic.name):
        raise Refusal(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"Not allowed to delete the topic {topic.name!r}.")
    return topic


def _refuse(result: DeletableTopicResult, outcome: Outcome, context: Context) -> None:
    context.stats.failed(outcome.code)
    result.error_code, result.error_message = outcome.code, outcome.message
