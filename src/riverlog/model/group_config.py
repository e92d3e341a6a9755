"""Every setting that a group may have of its own, once: its row is that of the node's setting for all groups.

`GroupConfig` is the table, and what a consumer group (KIP-848) lives by; members of classic ones bring their own times.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any, Final

from riverlog.model.row import row, rows_of
from riverlog.model.setting import BadSetting, NodeSettingName
from riverlog.model.settings import NODE_ONLY_SETTINGS, NodeSettings


def _group(name: str) -> Any:
    """Declare a setting of groups; for all groups of a node it has the same name behind `group.`."""
    for_all = NODE_ONLY_SETTINGS[f"group.{name}"]
    return row(replace(for_all, name=name, node_names=(NodeSettingName(for_all.name),), dynamic=True))


@dataclass(frozen=True, slots=True)
class GroupConfig:
    """The settings of one group, resolved: its own, else the node's."""

    consumer_assignment_interval_ms: int = _group("consumer.assignment.interval.ms")
    consumer_heartbeat_interval_ms: int = _group("consumer.heartbeat.interval.ms")
    consumer_session_timeout_ms: int = _group("consumer.session.timeout.ms")


GROUP_SETTINGS: Final = MappingProxyType(rows_of(GroupConfig))


def group_config(overrides: Mapping[str, str], settings: NodeSettings) -> GroupConfig:
    """Lay what was set for a group over what its node gives to all."""
    values = {}
    for each in fields(GroupConfig):
        text = overrides.get(each.metadata["setting"].name)
        values[each.name] = (
            getattr(settings, f"group_{each.name}") if text is None else each.metadata["setting"].read(text)
        )
    return GroupConfig(**values)


def check_group_times(config: GroupConfig) -> None:
    """Check what no single setting can know; BadSetting says what cannot be."""
    if config.consumer_session_timeout_ms <= config.consumer_heartbeat_interval_ms:
        raise BadSetting(
            f"consumer.session.timeout.ms ({config.consumer_session_timeout_ms}) must be greater than "
            f"consumer.heartbeat.interval.ms ({config.consumer_heartbeat_interval_ms})."
        )
