"""AlterConfigs and IncrementalAlterConfigs: settings of topics, brokers and groups, replaced or changed one by one."""

from riverlog.broker.requests.context import Context
from riverlog.metadata.commands.configs import AlterConfigs, ConfigChange, ResourceChanges
from riverlog.metadata.commands.outcome import Outcome
from riverlog.metadata.image import ConfigResourceType
from riverlog.model.access import Operation, ResourceType
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.wire.messages import alter_configs as whole
from riverlog.wire.messages import incremental_alter_configs as incremental
from riverlog.wire.messages.incremental_alter_configs import AlterConfigsResourceResponse, ConfigOperation


async def alter_configs(request: whole.AlterConfigsRequest, context: Context) -> whole.AlterConfigsResponse:
    """Replace all settings of each resource; a null value goes back to the default."""
    resources = [
        ResourceChanges(
            each.resource_type,
            each.resource_name,
            tuple(ConfigChange(config.name, ConfigOperation.SET, config.value) for config in each.configs),
        )
        for each in request.resources
    ]
    outcomes = await _alter(resources, context, replace=True, validate_only=request.validate_only)
    return whole.AlterConfigsResponse(responses=_results(resources, outcomes))


async def incremental_alter_configs(
    request: incremental.IncrementalAlterConfigsRequest, context: Context
) -> incremental.IncrementalAlterConfigsResponse:
    """Change the settings that are named and leave the others."""
    resources = [
        ResourceChanges(
            each.resource_type,
            each.resource_name,
            tuple(ConfigChange(config.name, config.config_operation, config.value) for config in each.configs),
        )
        for each in request.resources
    ]
    outcomes = await _alter(resources, context, replace=False, validate_only=request.validate_only)
    return incremental.IncrementalAlterConfigsResponse(responses=_results(resources, outcomes))


async def _alter(
    resources: list[ResourceChanges], context: Context, *, replace: bool, validate_only: bool
) -> list[Outcome]:
    """Submit the changes of the resources that the client may alter; outcomes keep their order."""
    refused = [_not_allowed(each, context) for each in resources]
    allowed = tuple(each for each, refusal in zip(resources, refused, strict=True) if refusal is None)
    try:
        command = AlterConfigs(allowed, replace=replace, validate_only=validate_only)
        decided = iter((await context.services.controller.submit(command)).outcomes if allowed else ())
    except Refusal as refusal:
        decided = iter([Outcome.of(refusal)] * len(allowed))
    outcomes = [next(decided) if each is None else each for each in refused]
    for outcome in outcomes:
        context.stats.failed(outcome.code)
    return outcomes


def _not_allowed(resource: ResourceChanges, context: Context) -> Outcome | None:
    if resource.type == ConfigResourceType.TOPIC:
        if context.allows_on_topic(Operation.ALTER_CONFIGS, resource.name):
            return None
        return Outcome(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"Not allowed to change settings of {resource.name!r}.")
    if resource.type == ConfigResourceType.GROUP:
        if context.allows(Operation.ALTER_CONFIGS, ResourceType.GROUP, resource.name):
            return None
        return Outcome(ErrorCode.GROUP_AUTHORIZATION_FAILED, f"Not allowed to change settings of {resource.name!r}.")
    if context.allows_on_cluster(Operation.ALTER_CONFIGS):
        return None
    return Outcome(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Not allowed to change the settings of brokers.")


def _results(resources: list[ResourceChanges], outcomes: list[Outcome]) -> list[AlterConfigsResourceResponse]:
    return [
        AlterConfigsResourceResponse(
            error_code=outcome.code,
            error_message=outcome.message,
            resource_type=resource.type,
            resource_name=resource.name,
        )
        for resource, outcome in zip(resources, outcomes, strict=True)
    ]
