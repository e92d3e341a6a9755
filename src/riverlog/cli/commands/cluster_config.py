"""`cluster config`: settings of brokers as they are in force, and those that can be changed while they run."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

import click

from riverlog.cli.cluster_options import ClusterOptions, cluster_options
from riverlog.cli.terminal.exits import CommandError, ExitCode, usage_error
from riverlog.cli.terminal.expressions import pairs
from riverlog.cli.terminal.options import INT32_MAX, Argument
from riverlog.cli.terminal.render import Row
from riverlog.cli.terminal.suggestions import did_you_mean
from riverlog.cli.terminal.tables import draw_table

if TYPE_CHECKING:
    from riverlog import Admin
    from riverlog.client.admin.admin import ConfigEntry

SOURCES: Final = {
    "BROKER_DYNAMIC": "set for this broker",
    "CLUSTER_DYNAMIC": "set for all brokers",
    "BROKER_STATIC": "its configuration",
    "DEFAULT": "default",
}
"""Where a value comes from, in words, by Kafka's names."""

broker_option: Final = click.option(
    "--broker",
    type=click.IntRange(0, INT32_MAX),
    metavar="N",
    help="The id of one broker; `cluster status` lists them.",
)


@click.command
@click.argument("names", cls=Argument, nargs=-1, metavar="NAME", help="The settings. Without it: those that were set.")
@broker_option
@click.option("--all", "everything", is_flag=True, help="All settings, also those that have their default.")
@cluster_options
def get(
    names: tuple[str, ...],
    broker: int | None,
    everything: bool,
    cluster: ClusterOptions,
) -> None:
    """Show the current settings of a broker.

    Without --broker that is the one with the lowest id. `config explain` says what a setting means.
    """

    async def work(admin: "Admin") -> "dict[str, ConfigEntry]":
        return await admin.describe_configs(broker=await _the(admin, broker))

    found = cluster.ask(work)
    _check_known(names, found, "")
    chosen = names or sorted(name for name, each in found.items() if everything or each.source.name != "DEFAULT")
    rows = [_row(found[name]) for name in chosen]
    cells = [[row["setting"], row["value"], row["source"]] for row in rows]
    cluster.emit(rows, lambda: draw_table(["setting", "value", "comes from"], cells, whole=1))


@click.command("set")
@click.argument(
    "settings_given", cls=Argument, nargs=-1, metavar="NAME=VALUE", help="The settings and their new values."
)
@click.option(
    "--delete",
    "deleted",
    multiple=True,
    metavar="NAME",
    help="Remove a setting, so that the value from before counts again.",
)
@broker_option
@cluster_options
def set_config(
    settings_given: tuple[str, ...],
    deleted: tuple[str, ...],
    broker: int | None,
    cluster: ClusterOptions,
) -> None:
    """Change settings of brokers while they run.

    It acts at once and never asks. Without --broker they are set for all brokers. Not every setting can be changed so:
    `config explain` says which.
    """
    if len(settings_given) == 2 and not any("=" in text for text in settings_given):
        raise usage_error(f"cluster config set takes NAME=VALUE; write {'='.join(settings_given)}")
    changes: dict[str, str | None] = {**pairs(settings_given, option="cluster config set"), **dict.fromkeys(deleted)}
    if not changes:
        raise usage_error("nothing to change: write NAME=VALUE, or --delete NAME")

    async def work(admin: "Admin") -> None:
        from riverlog.client.admin.admin import ALL_BROKERS

        asked = await _the(admin, broker)
        if deleted:
            _check_known(deleted, await admin.describe_configs(broker=asked), "nothing was changed: ")
        await admin.alter_configs(changes, broker=ALL_BROKERS if broker is None else asked)

    cluster.ask(work)
    where = "all brokers" if broker is None else f"broker {broker}"
    row: Row = {"broker": broker, "configs": changes}
    done = [f"{name}={value}" if value is not None else f"{name} as it was before" for name, value in changes.items()]
    cluster.emit([row], lambda: print(f"Changed {where}: {', '.join(done)}"))


def _check_known(names: Iterable[str], found: "Mapping[str, ConfigEntry]", undone: str) -> None:
    """Refuse a setting that brokers do not have: clusters take it back to its default without a word."""
    if absent := [name for name in names if name not in found]:
        hint = did_you_mean(absent[0], found) or "; `riverlog cluster config get --all` shows what there is"
        raise CommandError(f"{undone}brokers have no setting {absent[0]}{hint}", ExitCode.REFUSED)


async def _the(admin: "Admin", broker: int | None) -> int:
    """Return the broker that is meant, the one with the lowest id where none is named; refuse one that is not there."""
    known = sorted(each.node_id for each in (await admin.describe_cluster()).brokers)
    if broker is not None and broker not in known:
        sentence = f"there is no broker {broker}; the cluster has {', '.join(map(str, known))}"
        raise CommandError(sentence, ExitCode.REFUSED)
    return known[0] if broker is None else broker


def _row(entry: "ConfigEntry") -> Row:
    return {
        "setting": entry.name,
        "value": "(hidden)" if entry.sensitive else entry.value,
        "source": SOURCES.get(entry.source.name, entry.source.name.lower()),
        "read_only": entry.read_only,
    }
