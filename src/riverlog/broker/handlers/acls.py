"""DescribeAcls, CreateAcls, DeleteAcls: without an authorizer there are no entries to see or to change.

Kafka says SECURITY_DISABLED then, and tools take it as "no access control here", not as a failure.
"""

from typing import Final

from riverlog.broker.requests.context import Context
from riverlog.model.errors import ErrorCode
from riverlog.wire.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse
from riverlog.wire.messages.delete_acls import DeleteAclsFilterResult, DeleteAclsRequest, DeleteAclsResponse
from riverlog.wire.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse

_CODE: Final = ErrorCode.SECURITY_DISABLED
_WHY: Final = "No authorizer is configured: everybody may do everything."


def describe_acls(request: DescribeAclsRequest, context: Context) -> DescribeAclsResponse:
    """Return no entries: there are no access rules yet."""
    context.stats.failed(_CODE)
    return DescribeAclsResponse(error_code=_CODE, error_message=_WHY)


def create_acls(request: CreateAclsRequest, context: Context) -> CreateAclsResponse:
    """Refuse each entry."""
    context.stats.failed(_CODE)
    return CreateAclsResponse(results=[AclCreationResult(_CODE, _WHY) for _ in request.creations])


def delete_acls(request: DeleteAclsRequest, context: Context) -> DeleteAclsResponse:
    """Refuse each filter."""
    context.stats.failed(_CODE)
    return DeleteAclsResponse(filter_results=[DeleteAclsFilterResult(_CODE, _WHY) for _ in request.filters])
