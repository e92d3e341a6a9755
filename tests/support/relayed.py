"""A node behind relays: clients reach it through them only, and so does its own checkpoint store."""

import socket
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.node import Node
from tests.support.relay import HOST, HttpRelay, KafkaRelay, Watcher


class RelayedNode:
    """A node, the relay to its log, and the relay to its checkpoint store. Restarts keep all addresses."""

    def __init__(self, folder: Path) -> None:
        self.kafka = KafkaRelay()
        self.store = HttpRelay()
        settings = {
            "advertised.listeners": f"PLAINTEXT://{self.kafka.address}",
            "checkpoints.port": str(_free_port()),
            "metrics.port": "-1",
        }
        self.node = Node(folder, port=_free_port(), settings=settings)
        self._parts = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as parts:
            for each in (self.kafka, self.store, self.node):
                parts.enter_context(each)
            self._parts = parts.pop_all()
        self.kafka.lead_to(f"{HOST}:{self.node.port}")
        self.store.lead_to(self.node.addresses["checkpoints"])
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._parts.close()

    def watch(self, watcher: Watcher) -> None:
        """Report to somebody all that passes on either side, and to nobody else."""
        self.kafka.watcher = self.store.watcher = watcher

    @property
    def bootstrap(self) -> str:
        """Return the address of the log for clients."""
        return self.kafka.address

    @property
    def checkpoints(self) -> str:
        """Return the address of the checkpoint store for Spark."""
        return f"webhdfs://{self.store.address}"


def _free_port() -> int:
    with socket.create_server((HOST, 0)) as taken:
        port: int = taken.getsockname()[1]
        return port
