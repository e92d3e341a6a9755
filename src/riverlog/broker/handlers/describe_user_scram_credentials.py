"""DescribeUserScramCredentials: nobody can log in by SCRAM, since nobody has to."""

from riverlog.broker.requests.context import Context
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)


def describe_user_scram_credentials(
    request: DescribeUserScramCredentialsRequest, context: Context
) -> DescribeUserScramCredentialsResponse:
    """Find none of the users that are named, and nobody when all are meant."""
    if not context.allows_on_cluster(Operation.DESCRIBE):
        context.stats.failed(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        return DescribeUserScramCredentialsResponse(
            error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, error_message="Not allowed to see users."
        )
    names = [user.name for user in request.users or ()]
    return DescribeUserScramCredentialsResponse(
        results=[_missing(name, context, twice=names.count(name) > 1) for name in dict.fromkeys(names)]
    )


def _missing(name: str, context: Context, *, twice: bool) -> DescribeUserScramCredentialsResult:
    if twice:
        refusal = Refusal(ErrorCode.DUPLICATE_RESOURCE, f"The request names the user {name!r} more than once.")
    else:
        refusal = Refusal(ErrorCode.RESOURCE_NOT_FOUND, f"The user {name!r} has no SCRAM credentials.")
    context.stats.failed(refusal.code)
    return DescribeUserScramCredentialsResult(user=name, error_code=refusal.code, error_message=refusal.message)
