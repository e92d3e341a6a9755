"""The page of all settings, written from their table. `python -m tests.support.configuration_page` renews it."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from riverlog.model.group_config import GROUP_SETTINGS
from riverlog.model.kafka_settings import NODE_SETTINGS_WITHOUT_MEANING, TOPIC_SETTINGS_WITHOUT_MEANING
from riverlog.model.resolution import can_change
from riverlog.model.setting import LONG_MAX, NodeSettingName, Setting
from riverlog.model.settings import NODE_ONLY_SETTINGS, PROFILES, TOPIC_SETTINGS

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "configuration.md"

OPENING: Final = """\
<!-- generated from the table of settings by python -m tests.support.configuration_page -->

# Settings

Settings have Kafka's names where Kafka has the setting. A node takes them from three places. Each overrides the one
before:

1. a file in the form of Kafka's `server.properties` (`serve --config FILE`),
2. variables: `RIVERLOG_NUM_PARTITIONS=4` sets `num.partitions`,
3. flags: `--set num.partitions=4`, for any setting.

Some settings can be changed while a node runs: `riverlog cluster config set`, or any Kafka tool, sets them for one node
or for all. Settings of a topic are given when it is created, or later. A topic's own setting wins over the node's, and
the finest unit wins over coarser ones (`log.retention.ms` over `log.retention.hours`). `riverlog config explain NAME`
explains one setting.

An unknown name is an error, which suggests the nearest one. Settings of Kafka that have no meaning here are listed at
the end: a node accepts them, and names those that it was given in one warning. Settings that ask for protection
(authorisers, TLS, SASL) are not among them. A node cannot give it yet, so it does not start with them.

`dev` and `serve` are the same node with a few different defaults.
"""


def page() -> str:
    """Write the whole page."""
    return "\n".join(
        [
            OPENING,
            *_profiles(),
            "## Settings of nodes",
            "",
            "| Name | Type | Default | Changes while running | Meaning |",
            "|---|---|---|---|---|",
            *(_node_row(setting) for setting in NODE_ONLY_SETTINGS.values()),
            "",
            "## Settings of topics",
            "",
            "The second column has the names by which nodes set the value for all topics that say nothing themselves,",
            "strongest first. All of these can change while the topic is in use.",
            "",
            "| Name | For all topics of a node | Type | Default | Meaning |",
            "|---|---|---|---|---|",
            *(_row(setting) for setting in TOPIC_SETTINGS.values()),
            "",
            "## Settings of groups",
            "",
            "A consumer group (KIP-848) may have its own, set with `kafka-configs --entity-type groups` or any admin",
            "client, at any time. Its members get them with their next heartbeat.",
            "",
            "| Name | For all groups of a node | Type | Default | Meaning |",
            "|---|---|---|---|---|",
            *(_row(setting) for setting in GROUP_SETTINGS.values()),
            "",
            "## Known from Kafka, without meaning here",
            "",
            f"Nodes: {_names(NODE_SETTINGS_WITHOUT_MEANING)}.",
            "",
            f"Topics: {_names(TOPIC_SETTINGS_WITHOUT_MEANING)}.",
            "",
        ]
    )


def _profiles() -> Iterable[str]:
    rows = [f"| `{name}` | `{value}` |" for name, value in PROFILES["dev"].items()]
    return ["| Setting | Default of `dev` |", "|---|---|", *rows, ""]


def _node_row(setting: Setting) -> str:
    older = [name.name for name in setting.node_names[1:]]
    meaning = setting.doc + (f" Also known as {_names(older)}." if older else "")
    changes = "yes" if can_change(setting, setting.node_names[0]) else "no"
    return f"| `{setting.name}` | {_type(setting)} | {_default(setting)} | {changes} | {meaning} |"


def _row(setting: Setting) -> str:
    names = ", ".join(_node_name(name) for name in setting.node_names)
    return f"| `{setting.name}` | {names} | {_type(setting)} | {_default(setting)} | {setting.doc} |"


def _node_name(name: NodeSettingName) -> str:
    return f"`{name.name}`"


def _type(setting: Setting) -> str:
    unit = f" ({setting.unit})" if setting.unit else ""
    return f"{setting.range}{unit}"


def _default(setting: Setting) -> str:
    if setting.default == str(LONG_MAX):
        return "no limit"
    return f"`{setting.default}`" if setting.default else "-"


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


if __name__ == "__main__":
    PAGE.write_text(page())
