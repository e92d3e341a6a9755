"""How a setting becomes a field: a dataclass whose fields hold checked values and carry their rows as metadata."""

from collections.abc import Callable
from dataclasses import field, fields
from typing import Any

from riverlog.model.setting import Setting, Value


def same(value: Value) -> Value:
    return value


def row(setting: Setting, read: Callable[[Value], object] = same) -> Any:
    """Build a dataclass field whose default is the setting's and whose metadata is the setting itself."""
    default = read(setting.read(setting.default))
    return field(default=default, metadata={"setting": setting, "read": read})


def rows_of(config: type[Any]) -> dict[str, Setting]:
    """Return the settings that a class holds by their names, in the order of its fields."""
    settings = [each.metadata["setting"] for each in fields(config) if each.metadata]
    return {setting.name: setting for setting in settings}
