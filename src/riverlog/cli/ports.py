"""The ports that a node will open: are they free, and which are the next that are?

Answered by listening for a moment, before the node starts; who takes a port in between makes the node itself say so.
"""

import errno
import socket
import sys
from typing import Final, NamedTuple

from riverlog.cli.terminal.exits import CommandError
from riverlog.model.endpoints import PORT_MAX, Endpoint
from riverlog.model.ids import Address
from riverlog.model.resolution import client_listeners, controller_listeners
from riverlog.model.settings import NodeSettings

PORTS_TRIED_MAX: Final = 100
LOCALHOST: Final = "127.0.0.1"
_EVERYWHERE: Final = ("", "0.0.0.0", "::")
_CHECKPOINTS_PORT: Final = "checkpoints.port"


class ListenPort(NamedTuple):
    """A port that a node will open, the flag that changes it, and the option by which other commands are told."""

    host: str
    port: int
    flag: str
    told_by: str | None = None


def listen_ports(settings: NodeSettings) -> list[ListenPort]:
    """List the ports: the listeners in their order, then metrics and checkpoints, where they are served."""
    listeners = client_listeners(settings)
    found = [
        ListenPort(each.host, each.port, f"--set listeners={Endpoint(each.listener, each.host, 0)}"[:-1] + "PORT", "-b")
        for each in listeners
    ]
    for name, (host, port) in _others(settings).items():
        if port >= 0:
            told_by = "--store" if name == _CHECKPOINTS_PORT else None
            found.append(ListenPort(host or settings.listeners[0].host, port, f"--set {name}=PORT", told_by))
    return found


def controller_ports(settings: NodeSettings) -> list[ListenPort]:
    """List the ports for controllers; others know them, so that none is taken in the place of another."""
    return [ListenPort(each.host, each.port, "--set listeners=…") for each in controller_listeners(settings)]


def with_free_ports(settings: NodeSettings) -> dict[str, str]:
    """Return settings with the next free ports in place of busy ones, and print a line about each."""
    taken: list[int] = []
    for each in listen_ports(settings):
        port = next_free(each, taken)
        if port != each.port:
            address = Address(LOCALHOST if each.host in _EVERYWHERE else each.host, port)
            hint = f": other commands find it with {each.told_by} {address}" if each.told_by else ""
            print(f"riverlog: port {each.port} is in use; taking {port} instead{hint}", file=sys.stderr)
        taken.append(port)
    listeners = client_listeners(settings)
    changes = {}
    if taken[: len(listeners)] != [each.port for each in listeners]:
        endpoints = [each._replace(port=port) for each, port in zip(listeners, taken, strict=False)]
        changes["listeners"] = ",".join(map(str, endpoints))
    served = {name: port for name, (_, port) in _others(settings).items() if port >= 0}
    for (name, wanted), port in zip(served.items(), taken[len(listeners) :], strict=True):
        if port != wanted:
            changes[name] = str(port)
    return changes


def _others(settings: NodeSettings) -> dict[str, tuple[str, int]]:
    """Return host and port of what is not a listener, by the setting of its port."""
    return {
        "metrics.port": (settings.metrics_host, settings.metrics_port),
        _CHECKPOINTS_PORT: (settings.checkpoints_host, settings.checkpoints_port),
    }


def next_free(wanted: ListenPort, taken: list[int]) -> int:
    """Return the wanted port, or the next one that is free and not taken; 0 stays 0."""
    for port in range(wanted.port, min(wanted.port + PORTS_TRIED_MAX, PORT_MAX + 1)):
        if port == 0 or (port not in taken and is_free(wanted._replace(port=port))):
            return port
    raise CommandError(f"none of {PORTS_TRIED_MAX} ports from {wanted.port} on is free; choose one with {wanted.flag}")


def is_free(wanted: ListenPort) -> bool:
    """Return whether the port can be listened on; the node itself reports what else may be wrong."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            wanted.host or "0.0.0.0", wanted.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            probe.listen(1)
    except OSError as error:
        return error.errno != errno.EADDRINUSE
    return True
