"""`cluster quorum add` and `remove`: who votes on the metadata; `cluster unregister`: a broker is gone for good."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

import click

from riverlog.cli.cluster_options import ClusterOptions, cluster_options
from riverlog.cli.first_controllers import FORM, directory_of
from riverlog.cli.terminal.exits import CommandError, ExitCode, usage_error
from riverlog.cli.terminal.options import INT32_MAX, Argument, confirm, controller_option, yes_option
from riverlog.model.quorum_settings import read_voters
from riverlog.model.setting import BadSetting
from riverlog.model.uuids import encode_uuid

if TYPE_CHECKING:
    from riverlog import Admin
    from riverlog.client.admin.controllers import ControllerAdmin
    from riverlog.client.admin.quorum import QuorumDescription, QuorumReplica

T = TypeVar("T")


@click.command("add")
@click.argument(
    "voter",
    cls=Argument,
    metavar="ID@HOST:PORT[:DIRECTORY-ID]",
    help="The controller, and where it listens; its directory as `storage info` shows it.",
)
@controller_option
@cluster_options
def add_voter(voter: str, controllers: str | None, cluster: ClusterOptions) -> None:
    """Add a controller to the voters of the metadata.

    It must run, follow the metadata and have caught up. One change at a time: the next one can be made when this has
    been committed. Without a directory id, the one is taken with which the controller follows.
    """
    try:
        [parsed] = read_voters((voter,))
        address, directory = parsed.address, ""
    except BadSetting:
        head, _, directory = voter.rpartition(":")
        try:
            [parsed] = read_voters((head,))
        except BadSetting:
            raise usage_error(f"'{voter}' is no controller; write {FORM}, as in 4@c4:9093") from None
        address = parsed.address
    directory_id = directory_of(directory) if directory else None

    async def work(admin: "Admin | ControllerAdmin") -> UUID:
        quorum = await admin.describe_quorum()
        disk = directory_id or _directory(quorum.observers, parsed.id, "follows the metadata", voter)
        await admin.add_voter(parsed.id, disk, {_listener(quorum): (address.host, address.port)})
        return disk

    disk = encode_uuid(_ask(work, controllers, cluster))
    row = {"voter": parsed.id, "address": str(address), "directory_id": disk, "added": True}
    cluster.emit([row], lambda: print(f"Controller {parsed.id} votes now: Address={address}, Directory={disk}"))


@click.command("remove")
@click.argument(
    "voter",
    cls=Argument,
    metavar="ID[:DIRECTORY-ID]",
    help="The controller, and its directory as `cluster status` shows it.",
)
@yes_option
@controller_option
@cluster_options
def remove_voter(voter: str, yes: bool, controllers: str | None, cluster: ClusterOptions) -> None:
    """Remove a controller from the voters of the metadata.

    It may be gone; if it runs, it follows the metadata without voting. A majority of those that stay must run.
    """
    number, _, directory = voter.partition(":")
    node_id = _node_id(number, f"'{voter}' is no controller; write ID:DIRECTORY-ID, as in 4:3Db5QLSqSZieL3rJBUUegA")
    directory_id = directory_of(directory) if directory else None
    confirm(f"Remove controller {voter} from the voters?", yes=yes, otherwise="nothing was changed")

    async def work(admin: "Admin | ControllerAdmin") -> UUID:
        disk = directory_id or _directory((await admin.describe_quorum()).voters, node_id, "votes", voter)
        await admin.remove_voter(node_id, disk)
        return disk

    disk = encode_uuid(_ask(work, controllers, cluster))
    row = {"voter": node_id, "directory_id": disk, "removed": True}
    cluster.emit([row], lambda: print(f"Controller {node_id} votes no more: Directory={disk}"))


@click.command("unregister")
@click.argument("broker", cls=Argument, metavar="ID", help="The broker.")
@yes_option
@controller_option
@cluster_options
def unregister(broker: str, yes: bool, controllers: str | None, cluster: ClusterOptions) -> None:
    """Take a broker that is gone for good out of the cluster.

    Partitions that have replicas on it keep them until they are moved. If it starts again, it registers again.
    """
    node_id = _node_id(broker, f"'{broker}' is no broker; write its id, as `riverlog cluster status` shows it")
    confirm(f"Take broker {node_id} out of the cluster?", yes=yes, otherwise="nothing was changed")
    _ask(lambda admin: admin.unregister_broker(node_id), controllers, cluster)
    row = {"broker": node_id, "unregistered": True}
    cluster.emit([row], lambda: print(f"Broker {node_id} is no longer part of the cluster"))


def _ask(
    question: "Callable[[Admin | ControllerAdmin], Awaitable[T]]", controllers: str | None, cluster: ClusterOptions
) -> T:
    """Ask through brokers, or the controllers that are named."""
    return cluster.ask(question) if controllers is None else cluster.ask_controllers(controllers, question)


def _directory(replicas: "tuple[QuorumReplica, ...]", node_id: int, does: str, typed: str) -> UUID:
    """Find the directory id of a node that was named without one: where a disk was replaced, the one that lives."""
    found = sorted((each for each in replicas if each.node_id == node_id), key=lambda each: each.last_fetch_ms)
    if not found:
        raise CommandError(
            f"there is no node {node_id} that {does}; `riverlog cluster status` lists them, and "
            f"{typed}:DIRECTORY-ID names the directory",
            ExitCode.REFUSED,
        )
    return found[-1].directory_id


def _listener(quorum: "QuorumDescription") -> str:
    """Return the name of the listener on which the controllers reach each other."""
    names = [each.listener for endpoints in quorum.endpoints.values() for each in endpoints]
    return names[0] if names else "CONTROLLER"


def _node_id(text: str, otherwise: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= INT32_MAX):
        raise usage_error(otherwise)
    return int(text)
