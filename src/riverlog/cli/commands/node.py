"""`dev` and `serve`: settings from file, variables and flags, then a node until it is told to stop.

The difference is manners. `dev` is for one's own machine: it takes the next free port where one is busy, and its
defaults favour trying things out. `serve` is for keeping: it changes nothing that was not asked for.
"""

import errno
import sys
from contextlib import ExitStack
from typing import Final

import click

from riverlog.cli.node_configuration import configuration_from, configured, set_option
from riverlog.cli.ports import controller_ports, is_free, listen_ports, with_free_ports
from riverlog.cli.terminal.exits import CommandError, usage_error
from riverlog.cli.terminal.expressions import pairs
from riverlog.model.endpoints import PORT_MAX
from riverlog.model.resolution import Configuration

START_ATTEMPTS_MAX: Final = 3


@click.command
@click.option("--port", type=int, metavar="PORT", help="The port for clients (9092); 0 takes a free one.")
@click.option("--data", metavar="DIR", help="The folder for the data (./riverlog-data).")
@click.option("--ephemeral", is_flag=True, help="Keep the data in a temporary folder, and delete it at the end.")
@set_option
def dev(port: int | None, data: str | None, ephemeral: bool, settings: tuple[str, ...]) -> int:
    """Start a broker for development; there is nothing to set up.

    It listens on this machine only, takes the next free port where one is busy, and prints one line once it can be
    used. Ctrl-C stops it cleanly.
    """
    flags = pairs(settings, option="--set")
    if port is not None:
        _exclude("--port", "listeners", flags)
        if not 0 <= port <= PORT_MAX:
            raise usage_error(f"--port takes a number from 0 to {PORT_MAX}, not {port}")
        flags["listeners"] = f"PLAINTEXT://127.0.0.1:{port}"
        if port == 0:
            flags.setdefault("metrics.port", "0")
            flags.setdefault("checkpoints.port", "0")
    if data is not None:
        _exclude("--data", "log.dirs", flags)
        flags["log.dirs"] = data
    with ExitStack() as at_the_end:
        if ephemeral:
            from tempfile import TemporaryDirectory

            _exclude("--ephemeral", "log.dirs", flags)
            flags["log.dirs"] = at_the_end.enter_context(TemporaryDirectory(prefix="riverlog-"))
        for attempt in range(START_ATTEMPTS_MAX):
            configuration = configured("dev", flags=flags)
            changes = with_free_ports(configuration.settings)
            try:
                return _run(configured("dev", flags=flags | changes) if changes else configuration)
            except OSError as error:
                # Somebody took a port between our look at it and the node's: look again.
                if error.errno != errno.EADDRINUSE or attempt == START_ATTEMPTS_MAX - 1:
                    raise
        raise AssertionError("the last attempt returns or raises")


@click.command
@click.option(
    "--config", type=click.Path(), metavar="FILE", help="A file of settings, such as Kafka's server.properties."
)
@set_option
def serve(config: str | None, settings: tuple[str, ...]) -> int:
    """Start a broker from a configuration file.

    Settings come from the file, then RIVERLOG_* variables, then --set, each overriding the one before. Records
    are acknowledged after fsync unless a topic says otherwise. SIGTERM and Ctrl-C stop it cleanly.
    """
    configuration = configuration_from(config, settings)
    for wanted in (*listen_ports(configuration.settings), *controller_ports(configuration.settings)):
        if not is_free(wanted):
            raise CommandError(
                f"port {wanted.port} is in use; stop who uses it, or choose another port with {wanted.flag}"
            )
    return _run(configuration)


def _exclude(flag: str, name: str, flags: dict[str, str]) -> None:
    if name in flags:
        raise usage_error(f"{flag} and {name} say the same thing; give one of them")


def _run(configuration: Configuration) -> int:
    if not __debug__:
        raise usage_error("python -O leaves out the checks that keep records safe; start without -O and PYTHONOPTIMIZE")
    import uvloop

    from riverlog.cli.node_process import serve_until_stopped
    from riverlog.observe.logging import configure as configure_logging
    from riverlog.observe.logging import get_logger

    configure_logging(sys.stderr)
    if configuration.without_meaning:
        get_logger("riverlog.cli").warning(
            "settings without meaning here", names=", ".join(configuration.without_meaning)
        )
    return uvloop.run(serve_until_stopped(configuration.settings))
