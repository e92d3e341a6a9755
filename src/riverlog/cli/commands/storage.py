"""`storage`: ids for clusters and directories, folders that are prepared for a cluster, and whose a folder is."""

import os
import random
import secrets
from typing import TYPE_CHECKING

import click

from riverlog.cli.first_controllers import FORM, first_levels, first_voters
from riverlog.cli.node_configuration import configuration_from, set_option
from riverlog.cli.terminal.exits import CommandError, ExitCode, usage_error
from riverlog.cli.terminal.options import output_option
from riverlog.cli.terminal.render import OutputFormat, Row, emit
from riverlog.model.uuids import encode_uuid

if TYPE_CHECKING:
    from riverlog.controller.formatting import FormattedDirectory
    from riverlog.model.settings import NodeSettings
    from riverlog.raft.voters import VoterSet

config_option = click.option(
    "-c", "--config", type=click.Path(), required=True, metavar="FILE", help="The settings of the node."
)


@click.command("random-uuid")
def random_uuid() -> None:
    """Print a new id, for a cluster or for a directory."""
    from riverlog.controller.formatting import new_directory_id

    print(encode_uuid(new_directory_id(random.Random(secrets.randbits(128)))))


@click.command("format")
@click.option(
    "-t",
    "--cluster-id",
    required=True,
    metavar="ID",
    help="The cluster; `storage random-uuid` makes an id for a new one.",
)
@config_option
@click.option("-s", "--standalone", is_flag=True, help="This node begins the cluster, and is its only controller.")
@click.option(
    "-I",
    "--initial-controllers",
    metavar=f"{FORM},…",
    help="These controllers begin the cluster; each of them is formatted with the same list.",
)
@click.option(
    "-N", "--no-initial-controllers", is_flag=True, help="The cluster is there already; this controller joins it."
)
@click.option(
    "-g", "--ignore-formatted", is_flag=True, help="Leave directories as they are that are formatted already."
)
@click.option(
    "-f", "--feature", "features", multiple=True, metavar="NAME=LEVEL", help="A new cluster begins with this level."
)
@set_option
def format_storage(
    cluster_id: str,
    config: str,
    standalone: bool,
    initial_controllers: str | None,
    no_initial_controllers: bool,
    ignore_formatted: bool,
    features: tuple[str, ...],
    settings: tuple[str, ...],
) -> None:
    """Prepare the log directories of a node for a cluster.

    A controller needs one of --standalone, --initial-controllers and --no-initial-controllers, unless its settings name
    the voters (controller.quorum.voters). Brokers need none. Nothing is formatted a second time.
    """
    from riverlog.controller.opening import is_alone

    node = configuration_from(config, settings).settings
    chosen = [
        name
        for name, given in (
            ("--standalone", standalone),
            ("--initial-controllers", initial_controllers is not None),
            ("--no-initial-controllers", no_initial_controllers),
        )
        if given
    ]
    _check_cluster_id(cluster_id, node)
    _check_choice(chosen, node)
    if is_alone(node) and (initial_controllers is not None or features):
        raise usage_error(
            "a node without a listener for controllers is a cluster of its own, with features of its own; name the "
            "listener in controller.listener.names"
        )
    listener = node.controller_listener_names[0] if node.controller_listener_names else "CONTROLLER"
    voters = None if initial_controllers is None else first_voters(initial_controllers, listener=listener)
    levels = first_levels(features, dynamic=not node.controller_quorum_voters)
    formatted = _format(node, cluster_id, voters, levels, standalone=standalone, ignore_formatted=ignore_formatted)
    for directory in formatted:
        if directory.was_formatted:
            print(f"{directory.folder} was formatted already, and is left as it is")
        else:
            print(f"Formatted {directory.folder}: Directory={encode_uuid(directory.directory_id)}")
    named = ", ".join(f"{name}={level}" for name, level in sorted(levels.items()))
    print(f"Node {node.node_id} belongs to the cluster {cluster_id}{_part_of(node, voters, standalone=standalone)}")
    if any(not directory.was_formatted for directory in formatted) and (voters is not None or standalone):
        print(f"The cluster begins with {named}")


@click.command("info")
@config_option
@output_option
@set_option
def info(config: str, output: OutputFormat | None, settings: tuple[str, ...]) -> int:
    """Show whose the log directories of a node are, and who votes on its metadata.

    Nothing is changed. The exit code is 5 where something is wrong.
    """
    from riverlog.cli.storage_examination import examine

    node = configuration_from(config, settings).settings
    rows = examine(node, _folders(node))
    emit(rows, output, lambda: _show(rows))
    return ExitCode.FOUND if any(row["problem"] for row in rows) else ExitCode.DONE


def _folders(node: "NodeSettings") -> list[str]:
    return list(map(os.path.abspath, node.log_dirs))


def _check_cluster_id(cluster_id: str, node: "NodeSettings") -> None:
    if not cluster_id or not all(each.isascii() and (each.isalnum() or each in "._-") for each in cluster_id):
        raise usage_error(f"'{cluster_id}' cannot be the id of a cluster; `riverlog storage random-uuid` makes one")
    if node.cluster_id not in ("", cluster_id):
        raise usage_error(
            f"--cluster-id is {cluster_id}, and cluster.id in the settings is {node.cluster_id}; which one?"
        )


def _check_choice(chosen: list[str], node: "NodeSettings") -> None:
    """Refuse what does not go together, by the rules of Kafka's storage tool."""
    from riverlog.controller.opening import begins_cluster

    if len(chosen) > 1:
        raise usage_error(f"{' and '.join(chosen)} cannot both hold; give one of them")
    if chosen and node.controller_quorum_voters:
        raise usage_error(
            f"{chosen[0]} is for voters that are in the metadata, and controller.quorum.voters names them in the "
            "settings; remove one of the two (controller.quorum.bootstrap.servers says whom to ask)"
        )
    if chosen == ["--standalone"] and not node.is_controller:
        raise usage_error("--standalone is for controllers, and process.roles says that this node is none")
    if chosen == ["--no-initial-controllers"] and begins_cluster(node):
        raise usage_error(
            "--no-initial-controllers is for a cluster that is there already, and the settings name no other "
            "controller; name some in controller.quorum.bootstrap.servers"
        )
    if not chosen and node.is_controller and not node.controller_quorum_voters:
        raise usage_error(
            "a controller needs one of --standalone (it begins the cluster alone), --initial-controllers (it begins it "
            "with others) and --no-initial-controllers (the cluster is there already)"
        )


def _format(
    node: "NodeSettings",
    cluster_id: str,
    voters: "VoterSet | None",
    levels: dict[str, int],
    *,
    standalone: bool,
    ignore_formatted: bool,
) -> "list[FormattedDirectory]":
    from riverlog.controller.formatting import format_directories
    from riverlog.controller.opening import controller_endpoints
    from riverlog.log.identity import DirectoryRefused
    from riverlog.raft.voters import ReplicaKey, Voter
    from riverlog.world.clock import SystemClock
    from riverlog.world.disk import FileSystem

    try:
        return format_directories(
            FileSystem(),
            SystemClock(),
            random.Random(secrets.randbits(128)),
            _folders(node),
            cluster_id=cluster_id,
            node_id=node.node_id,
            first_voters=voters,
            own_voter=Voter(ReplicaKey(node.node_id), controller_endpoints(node)) if standalone else None,
            levels=levels,
            ignore_formatted=ignore_formatted,
        )
    except DirectoryRefused as error:
        raise CommandError(str(error)) from error


def _part_of(node: "NodeSettings", voters: "VoterSet | None", *, standalone: bool) -> str:
    """Return what the node does when the cluster begins, as the end of a sentence."""
    if standalone:
        return ", and begins it alone"
    if node.controller_quorum_voters:
        named = ", ".join(str(each.id) for each in node.controller_quorum_voters)
        return f", whose voters are named in the settings: {named}"
    if voters is not None and node.node_id in voters.ids:
        return f", and begins it with the voters {', '.join(map(str, voters.ids))}"
    return ", and joins it" if node.is_controller or voters is None else ", and asks its voters"


def _show(rows: list[Row]) -> None:
    for row in rows:
        facts = [
            f"{title}={row[name]}"
            for title, name in (("Cluster", "cluster_id"), ("Node", "node_id"), ("Directory", "directory_id"))
            if row[name] is not None
        ]
        print(f"{row['path']}: {', '.join(facts) if facts else 'of no cluster yet'}")
        for title, name in (("Voters", "voters"), ("Vote", "vote"), ("Begins with", "features")):
            if row[name]:
                print(f"  {title}: {row[name]}")
        if row["problem"]:
            print(f"  Problem: {row['problem']}")
