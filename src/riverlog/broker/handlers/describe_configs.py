"""DescribeConfigs: the settings of topics, groups and of this node, where each value was set, and what it means.

Loggers and subscriptions to client metrics have none.
"""

from collections.abc import Iterable
from typing import Final

from riverlog.broker.requests.context import Context
from riverlog.metadata.commands.configs import resource_of
from riverlog.metadata.image import ConfigResource, ConfigResourceType
from riverlog.model.access import Operation, ResourceType
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.resolution import SettingDescription, describe_group, describe_node, describe_topic
from riverlog.model.setting import SettingSource
from riverlog.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

_WITHOUT_SETTINGS: Final = (8, 16)  # loggers of brokers, client metrics


def describe_configs(request: DescribeConfigsRequest, context: Context) -> DescribeConfigsResponse:
    """Answer each resource on its own."""
    return DescribeConfigsResponse(results=[_result(each, request, context) for each in request.resources])


def _result(asked: DescribeConfigsResource, request: DescribeConfigsRequest, context: Context) -> DescribeConfigsResult:
    result = DescribeConfigsResult(resource_type=asked.resource_type, resource_name=asked.resource_name)
    try:
        described = _describe(asked, context)
    except Refusal as refusal:
        context.stats.failed(refusal.code)
        result.error_code, result.error_message = refusal.code, refusal.message
        return result
    wanted = set(asked.configuration_keys or ())  # who names none asks for all, be it with null or an empty list
    result.configs = [_config(each, request) for each in described if not wanted or each.name in wanted]
    return result


def _describe(asked: DescribeConfigsResource, context: Context) -> Iterable[SettingDescription]:
    is_topic = asked.resource_type == ConfigResourceType.TOPIC
    is_group = asked.resource_type == ConfigResourceType.GROUP
    if is_topic and not context.allows_on_topic(Operation.DESCRIBE_CONFIGS, asked.resource_name):
        raise Refusal(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"Not allowed to see settings of {asked.resource_name!r}.")
    if is_group and not context.allows(Operation.DESCRIBE_CONFIGS, ResourceType.GROUP, asked.resource_name):
        raise Refusal(ErrorCode.GROUP_AUTHORIZATION_FAILED, f"Not allowed to see settings of {asked.resource_name!r}.")
    if not (is_topic or is_group) and not context.allows_on_cluster(Operation.DESCRIBE_CONFIGS):
        raise Refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Not allowed to see the settings of brokers.")
    if asked.resource_type in _WITHOUT_SETTINGS:
        return ()
    layers = context.services.metadata.settings.layers
    resource = resource_of(context.image, asked.resource_type, asked.resource_name)
    topic = context.image.topic(resource.name)
    if resource.type is ConfigResourceType.TOPIC and topic is not None:
        return describe_topic(context.image.config(resource), layers, replication_factor=topic.replication_factor)
    if resource.type is ConfigResourceType.GROUP:
        return describe_group(context.image.config(resource), layers)
    if not resource.name:
        return _set_for_all(resource, context)
    if resource.name != str(context.services.node_id):
        raise Refusal(
            ErrorCode.INVALID_REQUEST,
            f"This is broker {context.services.node_id}; ask broker {resource.name} for its own settings.",
        )
    return describe_node(layers)


def _set_for_all(resource: ConfigResource, context: Context) -> Iterable[SettingDescription]:
    """Return what was set for all brokers alone: each has defaults of its own."""
    values = context.image.config(resource)
    described = describe_node(context.services.metadata.settings.layers)
    return [
        SettingDescription(
            each.setting,
            each.name,
            values[each.name],
            SettingSource.CLUSTER,
            tuple(synonym for synonym in each.synonyms if synonym.source is SettingSource.CLUSTER),
            each.read_only,
        )
        for each in described
        if each.name in values
    ]


def _config(described: SettingDescription, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    secret = described.setting.sensitive
    synonyms = described.synonyms if request.include_synonyms else ()
    return DescribeConfigsResourceResult(
        name=described.name,
        value=None if secret else described.text,
        read_only=described.read_only,
        config_source=described.source,
        is_sensitive=secret,
        synonyms=[
            DescribeConfigsSynonym(name=each.name, value=None if secret else each.text, source=each.source)
            for each in synonyms
        ],
        config_type=described.setting.kind,
        documentation=described.setting.doc if request.include_documentation else None,
    )
