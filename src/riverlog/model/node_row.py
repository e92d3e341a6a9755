"""How a setting of nodes is declared: a row of the table, with the older names that stand for it."""

from collections.abc import Callable
from typing import Any

from riverlog.model.row import row, same
from riverlog.model.setting import NodeSettingName, Setting, SettingType, Value


def node_row(
    name: str,
    kind: SettingType,
    default: object,
    doc: str,
    *,
    or_else: tuple[str, ...] = (),
    read: Callable[[Value], object] = same,
    **more: Any,
) -> Any:
    """Declare a setting of nodes."""
    names = tuple(NodeSettingName(each) for each in (name, *or_else))
    text = str(default).lower() if isinstance(default, bool) else str(default)
    return row(Setting(name=name, kind=kind, default=text, doc=doc, node_names=names, **more), read)
