"""DescribeClientQuotas: the bounds set for users, client ids and addresses."""

from riverlog.wire.apis import ApiKey
from riverlog.wire.types import array, boolean, float64, int8, int16, int32, message, string, struct


@struct
class ComponentData:
    """What one part of an entity must match: 0 a name, 1 the default, 2 any name."""

    entity_type: str = string()
    match_type: int = int8()
    match: str | None = string(nullable_since=0)


@message(ApiKey.DESCRIBE_CLIENT_QUOTAS)
class DescribeClientQuotasRequest:
    """Name the parts; a strict request wants entities that have no others."""

    components: list[ComponentData] = array(ComponentData)
    strict: bool = boolean()


@struct
class EntityData:
    """A part of an entity; a null name is the default."""

    entity_type: str = string()
    entity_name: str | None = string(nullable_since=0)


@struct
class ValueData:
    """A bound."""

    key: str = string()
    value: float = float64()


@struct
class EntryData:
    """An entity and its bounds."""

    entity: list[EntityData] = array(EntityData)
    values: list[ValueData] = array(ValueData)


@message(ApiKey.DESCRIBE_CLIENT_QUOTAS)
class DescribeClientQuotasResponse:
    """The bounds that match."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0)
    entries: list[EntryData] | None = array(EntryData, nullable_since=0)
