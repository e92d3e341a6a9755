"""Changing the settings of topics, brokers and groups while they run."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from riverlog.metadata.commands.outcome import DONE, Outcome, repeats
from riverlog.metadata.commands.topics import check_kept, config_records
from riverlog.metadata.draft import after
from riverlog.metadata.features import MIN_IN_SYNC
from riverlog.metadata.image import ConfigResource, ConfigResourceType, MetadataImage
from riverlog.metadata.records import MetadataRecord
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.group_config import GROUP_SETTINGS
from riverlog.model.internal_topics import WAS_DELETED
from riverlog.model.machine import Command
from riverlog.model.resolution import check_group, check_node, check_topic
from riverlog.model.setting import INT_DIGITS_MAX, BadSetting, Setting, SettingType
from riverlog.model.settings import NODE_SETTINGS, TOPIC_SETTINGS, SettingLayers
from riverlog.wire.messages.incremental_alter_configs import ConfigOperation


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """One setting and what to do with it."""

    name: str
    operation: int
    value: str | None = None


@dataclass(frozen=True, slots=True)
class ResourceChanges:
    """Changes to one resource, which are made together or not at all. Its type is as the client sent it."""

    type: int
    name: str
    changes: tuple[ConfigChange, ...]


@dataclass(frozen=True, slots=True)
class AlterConfigs(Command[MetadataRecord, "ConfigsAltered"]):
    """Change settings; with `replace` whatever is not named goes back to its default."""

    resources: tuple[ResourceChanges, ...]
    replace: bool = False
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class ConfigsAltered:
    """The reply to AlterConfigs, in the order of the resources."""

    outcomes: tuple[Outcome, ...]


def alter_configs(
    image: MetadataImage, command: AlterConfigs, layers: SettingLayers
) -> tuple[list[MetadataRecord], ConfigsAltered]:
    """Decide about each resource on its own."""
    records: list[MetadataRecord] = []
    outcomes: list[Outcome] = []
    repeated = repeats((changes.type, changes.name) for changes in command.resources)
    for changes in command.resources:
        try:
            if (changes.type, changes.name) in repeated:
                raise Refusal(ErrorCode.INVALID_REQUEST, f"The request names {changes.name!r} more than once.")
            facts = _changed(image, changes, layers, replace=command.replace)
        except Refusal as refusal:
            outcomes.append(Outcome.of(refusal))
            continue
        image = after(image, facts)
        records += facts
        outcomes.append(DONE)
    return [] if command.validate_only else records, ConfigsAltered(tuple(outcomes))


def resource_of(image: MetadataImage, type_: int, name: str) -> ConfigResource:
    """Return the resource that a client names, if there is one."""
    if type_ == ConfigResourceType.TOPIC:
        if image.topic(name) is None:
            why = f" {WAS_DELETED}" if name in image.lost_topics else ""
            raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {name!r}.{why}")
        return ConfigResource(ConfigResourceType.TOPIC, name)
    if type_ == ConfigResourceType.BROKER:
        is_number = name.isascii() and name.isdigit() and len(name) <= INT_DIGITS_MAX
        if name and not (is_number and (int(name) in image.brokers or int(name) in image.controllers)):
            raise Refusal(ErrorCode.INVALID_REQUEST, f"There is no broker {name!r}; brokers are named by their number.")
        return ConfigResource(ConfigResourceType.BROKER, name and str(int(name)))
    if type_ == ConfigResourceType.GROUP:  # there need be no such group yet
        if not name:
            raise Refusal(ErrorCode.INVALID_REQUEST, "A group has a name; settings of brokers are for all of them.")
        return ConfigResource(ConfigResourceType.GROUP, name)
    raise Refusal(
        ErrorCode.INVALID_REQUEST, f"Resources of type {type_} have no settings; topics, brokers and groups do."
    )


def _changed(
    image: MetadataImage, changes: ResourceChanges, layers: SettingLayers, *, replace: bool
) -> Iterable[MetadataRecord]:
    resource = resource_of(image, changes.type, changes.name)
    if repeated := repeats(change.name for change in changes.changes):
        raise Refusal(ErrorCode.INVALID_REQUEST, f"The request names the setting {min(repeated)} more than once.")
    before = image.config(resource)
    after = {} if replace else dict(before)
    for change in changes.changes:
        value = _value(resource, before, change)
        if value is None:
            after.pop(change.name, None)
        else:
            after[change.name] = value
    _check(resource, after, before, layers)
    _check_in_sync(image, resource, after, before)
    changed = {name: after.get(name) for name in before.keys() | after.keys() if after.get(name) != before.get(name)}
    return config_records(resource, changed)


def _check_in_sync(
    image: MetadataImage, resource: ConfigResource, after: Mapping[str, str], before: Mapping[str, str]
) -> None:
    """Refuse what would let nodes disagree on how many replicas must be in sync, on which eligible leaders rest."""
    if resource.type is not ConfigResourceType.BROKER or not image.keeps_eligible:
        return
    if after.get(MIN_IN_SYNC) == before.get(MIN_IN_SYNC):
        return
    if resource.name:
        raise Refusal(
            ErrorCode.INVALID_CONFIG,
            f"{MIN_IN_SYNC} cannot be set for one broker: eligible leaders rest on it. Set it for a topic or for all.",
        )
    if MIN_IN_SYNC not in after:
        raise Refusal(
            ErrorCode.INVALID_CONFIG, f"{MIN_IN_SYNC} of the cluster cannot be deleted: eligible leaders rest on it."
        )


def _value(resource: ConfigResource, before: Mapping[str, str], change: ConfigChange) -> str | None:
    """Return the setting's new value, None where it goes back to its default."""
    match change.operation:
        case ConfigOperation.DELETE:
            return None
        case ConfigOperation.SET:
            return _given(change)
        case ConfigOperation.APPEND | ConfigOperation.SUBTRACT:
            setting = _setting(resource, change.name)
            if setting is None or setting.kind is not SettingType.LIST:
                raise Refusal(ErrorCode.INVALID_CONFIG, f"{change.name} is not a list; it can only be set or deleted.")
            present = _parts(before.get(change.name, setting.default))
            given = _parts(_given(change))
            if change.operation == ConfigOperation.SUBTRACT:
                return ",".join(part for part in present if part not in given)
            return ",".join([*present, *(part for part in given if part not in present)])
        case _:
            raise Refusal(ErrorCode.INVALID_REQUEST, f"There is no operation {change.operation} on settings.")


def _given(change: ConfigChange) -> str:
    if change.value is None:
        raise Refusal(ErrorCode.INVALID_REQUEST, f"{change.name} has no value.")
    return change.value


def _parts(text: str) -> list[str]:
    return [part for part in (piece.strip() for piece in text.split(",")) if part]


def _setting(resource: ConfigResource, name: str) -> Setting | None:
    """Return the table's row for a setting; None for those that mean nothing here."""
    if resource.type is ConfigResourceType.TOPIC:
        return TOPIC_SETTINGS.get(name)
    if resource.type is ConfigResourceType.GROUP:
        return GROUP_SETTINGS.get(name)
    row = NODE_SETTINGS.get(name)
    return row[0] if row else None


def _check(
    resource: ConfigResource, after: Mapping[str, str], before: Mapping[str, str], layers: SettingLayers
) -> None:
    try:
        if resource.type is ConfigResourceType.TOPIC:
            check_topic(after, layers)
            check_kept(resource.name, after)
        elif resource.type is ConfigResourceType.GROUP:
            check_group(after, layers)
        else:
            check_node({name: value for name, value in after.items() if before.get(name) != value})
    except BadSetting as problem:
        is_broker = resource.type is ConfigResourceType.BROKER  # of brokers Kafka says it in other words
        raise Refusal(ErrorCode.INVALID_REQUEST if is_broker else ErrorCode.INVALID_CONFIG, str(problem)) from None
