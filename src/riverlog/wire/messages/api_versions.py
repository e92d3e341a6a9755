"""ApiVersions: which requests a broker understands, and which features the cluster has switched on.

The first request of most clients, sent before they know what the broker speaks: an unknown version is answered
in version 0 with UNSUPPORTED_VERSION and the known range inside, and the answer's header never has tagged fields.
"""

from typing import Final

from riverlog.wire.apis import ApiKey
from riverlog.wire.types import OWN_TAG, array, boolean, int16, int32, int64, message, string, struct

OWN_SOFTWARE: Final = "riverlog"
"""The name by which a client asks for what is ours alone."""


@message(ApiKey.API_VERSIONS)
class ApiVersionsRequest:
    """Ask what the broker speaks, and say which software asks."""

    client_software_name: str = string(since=3)
    client_software_version: str = string(since=3)


@struct
class ApiVersion:
    """The versions of one API that may be used."""

    api_key: int = int16()
    min_version: int = int16()
    max_version: int = int16()


@struct
class SupportedFeatureKey:
    """The levels of a feature that the broker could run at."""

    name: str = string(since=3)
    min_version: int = int16(since=3)
    max_version: int = int16(since=3)


@struct
class FinalizedFeatureKey:
    """The level of a feature that the whole cluster runs at."""

    name: str = string(since=3)
    max_version_level: int = int16(since=3)
    min_version_level: int = int16(since=3)


@message(ApiKey.API_VERSIONS)
class ApiVersionsResponse:
    """What the broker speaks."""

    error_code: int = int16()
    api_keys: list[ApiVersion] = array(ApiVersion)
    throttle_time_ms: int = int32(since=1)
    supported_features: list[SupportedFeatureKey] = array(SupportedFeatureKey, since=3, tag=0)
    finalized_features_epoch: int = int64(since=3, tag=1, default=-1)
    finalized_features: list[FinalizedFeatureKey] = array(FinalizedFeatureKey, since=3, tag=2)
    zk_migration_ready: bool = boolean(since=3, tag=3)
    window_bytes: int = int32(since=3, tag=OWN_TAG)  # ours: how much this connection may have unanswered
