"""A node in this process: start it, print its addresses, stop it when a signal comes."""

import asyncio
import os
import signal
from dataclasses import replace
from typing import Final

from riverlog.cli.terminal.exits import CommandError, ExitCode
from riverlog.controller.snapshot_files import BadMetadata
from riverlog.log.identity import DirectoryRefused
from riverlog.model.errors import Refusal
from riverlog.model.ids import Address
from riverlog.model.settings import NodeSettings
from riverlog.node import Node
from riverlog.node_controller import NotJoined
from riverlog.observe.process import keep_objects, seconds_since_start

STOPPING: Final = (signal.SIGTERM, signal.SIGINT)


async def serve_until_stopped(settings: NodeSettings) -> int:
    """Serve until SIGTERM or Ctrl-C; a second one does not wait for the node to finish."""
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()

    def tell() -> None:
        stopping.set()
        for each in STOPPING:
            loop.remove_signal_handler(each)

    for each in STOPPING:
        loop.add_signal_handler(each, tell)
    settings = replace(settings, log_dirs=tuple(map(os.path.abspath, settings.log_dirs)))  # as clients are told them
    node = Node(settings)
    if not await _started(node, stopping):
        return ExitCode.DONE
    try:
        keep_objects()
        node.stats.startup_seconds = seconds_since_start()
        kafka = node.endpoints[0].address if node.endpoints else None
        controller = node.part.endpoints[0].address if node.part.endpoints else None
        print(ready_line(kafka, controller, node.metrics, node.checkpoints, settings.log_dirs), flush=True)
        failing = asyncio.create_task(node.run())
        waiting = asyncio.create_task(stopping.wait())
        await asyncio.wait({failing, waiting}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await node.stop()
    if failing.done():
        raise CommandError(f"the node could not go on: {failing.result()}; its log says more") from failing.result()
    failing.cancel()
    return ExitCode.DONE


async def _started(node: Node, stopping: asyncio.Event) -> bool:
    """Start the node; return whether it serves now, or was told to stop before, as while it waits for a quorum."""
    starting = asyncio.create_task(node.start())
    told = asyncio.create_task(stopping.wait())
    await asyncio.wait({starting, told}, return_when=asyncio.FIRST_COMPLETED)
    told.cancel()
    if not starting.done():
        starting.cancel()
        await asyncio.wait({starting})
        if starting.cancelled():
            return False
    error = starting.exception()
    if error is not None:
        raise _refusal(error) or error
    return True


def _refusal(error: BaseException) -> CommandError | None:
    """Return the sentence and the exit code for a node that cannot start; None where nobody expected that."""
    from riverlog.controller.broker_session import NotRegistered  # a node that is alone starts without it

    match error:
        case DirectoryRefused() | BadMetadata() | Refusal():
            return CommandError(str(error))
        case NotJoined():
            return CommandError(str(error), ExitCode.UNREACHABLE)
        case NotRegistered():
            return CommandError(str(error), ExitCode.REFUSED)
        case _:
            return None


def ready_line(
    kafka: Address | None,
    controller: Address | None,
    metrics: Address | None,
    checkpoints: Address | None,
    folders: tuple[str, ...],
) -> str:
    """Return the line that announces the node, with every address that it has."""
    words = ["riverlog ready"]
    words += [f"{name}={at}" for name, at in (("kafka", kafka), ("controller", controller)) if at is not None]
    named = kafka or controller
    assert named is not None, "a node listens somewhere"
    for service, scheme, address in (("metrics", "http", metrics), ("checkpoints", "webhdfs", checkpoints)):
        if address is not None:
            host = named.host if address.host in ("0.0.0.0", "::") else address.host
            words.append(f"{service}={scheme}://{Address(host, address.port)}")
    words.append(f"data={','.join(folders)}")
    return " ".join(words)
