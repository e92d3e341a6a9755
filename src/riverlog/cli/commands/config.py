"""`config explain`: what a setting means, which values it takes, and where it is set. Asks no broker."""

from textwrap import fill
from typing import Final

import click

from riverlog.cli.terminal.exits import usage_error
from riverlog.cli.terminal.options import Argument, output_option
from riverlog.cli.terminal.render import OutputFormat, Row, emit, emit_table
from riverlog.model.kafka_settings import (
    NODE_SETTINGS_WITHOUT_MEANING,
    TOPIC_SETTINGS_WITHOUT_MEANING,
    UNSUPPORTED_NODE_SETTINGS,
)
from riverlog.model.resolution import VARIABLE_PREFIX, can_change, unknown_name
from riverlog.model.setting import NodeSettingName, Setting
from riverlog.model.settings import NODE_SETTINGS, PROFILES, TOPIC_SETTINGS

WITHOUT_MEANING: Final = NODE_SETTINGS_WITHOUT_MEANING | TOPIC_SETTINGS_WITHOUT_MEANING
UNIT_OF_FACTOR: Final = {60_000: "minutes", 3_600_000: "hours"}


@click.command
@click.argument("name", cls=Argument, required=False, metavar="NAME", help="The setting; without it, all are listed.")
@output_option
def explain(name: str | None, output: OutputFormat | None) -> None:
    """Explain a setting: meaning, type, default, where it is set.

    Settings have Kafka's names. A node takes them from its configuration file, from RIVERLOG_* variables and from
    --set, each overriding the one before.
    """
    if name is None:
        _list(output)
        return
    if name in NODE_SETTINGS or name in TOPIC_SETTINGS:
        facts = facts_of(name)
        # Facts about one thing are prose, also in a pipe.
        emit([facts], output or OutputFormat.TABLE, lambda: print(_prose(facts)))
    elif name in WITHOUT_MEANING or name in UNSUPPORTED_NODE_SETTINGS:
        meaning = "Known from Kafka but without meaning here: it is accepted and does nothing."
        if name in UNSUPPORTED_NODE_SETTINGS:
            feature = UNSUPPORTED_NODE_SETTINGS[name].feature
            meaning = f"Known from Kafka: it asks for {feature}, which a node does not support yet, and is refused."
        row = {"name": name, "meaning": meaning}
        emit([row], output or OutputFormat.TABLE, lambda: print(f"{name}\n  {meaning}"))
    else:
        sentence = unknown_name(name, [*TOPIC_SETTINGS, *NODE_SETTINGS])
        raise usage_error(f"{sentence[0].lower()}{sentence[1:]} `riverlog config explain` lists them all")


def facts_of(name: str) -> Row:
    """Gather what the table of settings knows about a name."""
    setting, node_name = _rows(name)
    for_topics = setting.name in TOPIC_SETTINGS
    facts: dict[str, object] = {"name": name, "meaning": setting.doc, "type": setting.kind.name.lower()}
    if node_name and node_name.factor != 1:
        facts["meaning"] = f"{setting.name} in {UNIT_OF_FACTOR[node_name.factor]}. {setting.doc}"
    elif setting.unit:
        facts["unit"] = setting.unit
    facts["values"] = setting.range
    facts["default"] = _default(setting, node_name)
    profiles = {
        profile: values[each.name]
        for profile, values in PROFILES.items()
        for each in setting.node_names
        if each.name in values
    }
    if profiles:
        facts["default_in"] = profiles
    facts["changes_at_run_time"] = setting.dynamic and (node_name is None or can_change(setting, node_name))
    if for_topics:
        facts["topic"] = f"topics create|alter NAME --config {setting.name}=…"
    if setting.node_names:
        facts["node"] = [each.name for each in setting.node_names]
        strongest = (node_name or setting.node_names[0]).name
        facts["set_by"] = [
            f"{strongest}=… in the configuration file",
            f"{VARIABLE_PREFIX}{strongest.upper().replace('.', '_')}=…",
            f"--set {strongest}=…",
        ]
    return facts


def _list(output: OutputFormat | None) -> None:
    names = sorted({*TOPIC_SETTINGS, *NODE_SETTINGS})
    rows = []
    for name in names:
        setting, node_name = _rows(name)
        scopes = [word for word, table in (("topic", TOPIC_SETTINGS), ("node", NODE_SETTINGS)) if name in table]
        rows.append({"name": name, "scope": "+".join(scopes), "default": _default(setting, node_name)})
    emit_table(rows, output, ["name", "scope", "default"])


def _rows(name: str) -> tuple[Setting, NodeSettingName | None]:
    """Find the setting, and the node's name for it where it is not the setting's own."""
    if name in TOPIC_SETTINGS:
        return TOPIC_SETTINGS[name], None
    return NODE_SETTINGS[name]


def _default(setting: Setting, name: NodeSettingName | None) -> str:
    if name is None or name.factor == 1:
        return setting.default
    return str(int(setting.default) // name.factor)


def _prose(facts: Row) -> str:
    lines = [str(facts["name"]), fill(str(facts["meaning"]), 98, initial_indent="  ", subsequent_indent="  "), ""]
    unit = f", in {facts['unit']}" if "unit" in facts else ""
    lines.append(f"  type      {facts['type']}{unit}")
    lines.append(f"  values    {facts['values']}")
    lines.append(f"  default   {facts['default'] or '(empty)'}")
    profiles = facts.get("default_in")
    if isinstance(profiles, dict):
        lines += [f"            {value} in `riverlog {profile}`" for profile, value in profiles.items()]
    lines.append(f"  changes   {'while the node runs' if facts['changes_at_run_time'] else 'at the next start'}")
    if "topic" in facts:
        lines.append(f"  topic     {facts['topic']}")
    ways = facts.get("set_by")
    if isinstance(ways, list):
        label = "  node      "
        for way in ways:
            lines.append(label + way)
            label = " " * len(label)
    names = facts.get("node")
    if isinstance(names, list) and len(names) > 1:
        lines.append(f"            strongest first: {', '.join(names)}")
    return "\n".join(lines)
