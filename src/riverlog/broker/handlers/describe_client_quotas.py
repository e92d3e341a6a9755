"""DescribeClientQuotas: no bounds are set for any client."""

from typing import Final

from riverlog.broker.requests.context import Context
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.wire.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

_ENTITY_TYPES: Final = ("user", "client-id", "ip")
_MATCHES: Final = range(3)
_EXACTLY: Final = 0


def describe_client_quotas(request: DescribeClientQuotasRequest, context: Context) -> DescribeClientQuotasResponse:
    """Return no entries: there are no quotas yet."""
    try:
        if not context.allows_on_cluster(Operation.DESCRIBE_CONFIGS):
            raise Refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Not allowed to see quotas.")
        _check(request.components)
    except Refusal as refusal:
        context.stats.failed(refusal.code)
        return DescribeClientQuotasResponse(error_code=refusal.code, error_message=refusal.message)
    return DescribeClientQuotasResponse(entries=[])


def _check(components: list[ComponentData]) -> None:
    types = [each.entity_type for each in components]
    for each in components:
        if not each.entity_type:
            raise Refusal(ErrorCode.INVALID_REQUEST, "The filter has a part without a type of entity.")
        if each.entity_type not in _ENTITY_TYPES:
            raise Refusal(
                ErrorCode.UNSUPPORTED_VERSION, f"There are no quotas for entities of type {each.entity_type!r}."
            )
        if each.match_type not in _MATCHES:
            raise Refusal(ErrorCode.INVALID_REQUEST, f"{each.match_type} is not a way of matching.")
        if (each.match is not None) != (each.match_type == _EXACTLY):
            raise Refusal(ErrorCode.INVALID_REQUEST, "A name is there to be matched exactly, and in no other way.")
        if types.count(each.entity_type) > 1:
            raise Refusal(ErrorCode.INVALID_REQUEST, f"The filter names {each.entity_type} more than once.")
    if "ip" in types and len(types) > 1:
        raise Refusal(ErrorCode.INVALID_REQUEST, "Addresses have quotas of their own, apart from users and client ids.")
