"""DescribeUserScramCredentials: which users can log in by SCRAM, and how."""

from riverlog.wire.apis import ApiKey
from riverlog.wire.types import array, int8, int16, int32, message, string, struct


@struct
class UserName:
    """A user."""

    name: str = string()


@message(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS)
class DescribeUserScramCredentialsRequest:
    """Name the users; null asks for all."""

    users: list[UserName] | None = array(UserName, nullable_since=0)


@struct
class CredentialInfo:
    """A mechanism by which the user can log in."""

    mechanism: int = int8()
    iterations: int = int32()


@struct
class DescribeUserScramCredentialsResult:
    """A user's mechanisms."""

    user: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0)
    credential_infos: list[CredentialInfo] = array(CredentialInfo)


@message(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS)
class DescribeUserScramCredentialsResponse:
    """The answer, user by user."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0)
    results: list[DescribeUserScramCredentialsResult] = array(DescribeUserScramCredentialsResult)
