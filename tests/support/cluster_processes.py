"""A cluster of node processes: started as a user starts them, killed, paused, resumed and stopped one by one."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Final, Self
from uuid import UUID

from riverlog.controller.formatting import format_directories
from riverlog.log.identity import find
from riverlog.model.endpoints import Endpoint
from riverlog.model.ids import NodeId
from riverlog.raft.voters import ReplicaKey, Voter, VoterSet
from riverlog.world.clock import SystemClock
from riverlog.world.disk import FileSystem
from tests.support.node import POLL_SECONDS, READY, ROOT, NodeFailed

CLUSTER_ID: Final = "abcdefghijklmnopqrstuA"
CONTROLLER: Final = "controller"
BROKER: Final = "broker"
BOTH: Final = "broker,controller"
START_SECONDS_MAX: Final = 30.0
_LISTENER: Final = "CONTROLLER"


class ClusterProcesses:
    """Nodes by their ids, and what each of them is. Those in `voters` begin the cluster together."""

    def __init__(
        self,
        folder: Path,
        roles: Mapping[int, str],
        *,
        voters: tuple[int, ...] | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self.roles = dict(roles)
        first, second = (ports := _free_ports(2 * len(roles)))[::2], ports[1::2]
        self.ports = dict(zip(roles, first, strict=True))
        self._controller_ports = dict(zip(roles, second, strict=True))
        controllers = [node for node, role in roles.items() if CONTROLLER in role]
        self.voters = tuple(controllers) if voters is None else voters
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        voters_at_first = VoterSet.of(self.voter(node) for node in self.voters)
        for node, role in self.roles.items():
            format_directories(
                FileSystem(),
                SystemClock(),
                Random(),
                [str(folder / str(node))],
                cluster_id=CLUSTER_ID,
                node_id=NodeId(node),
                first_voters=voters_at_first if node in self.voters else None,
            )
            self._configure(node, role, settings or {})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for node in tuple(self._processes):
            self.kill(node)

    def start(self, *nodes: int) -> None:
        """Start these nodes, or all, and wait until each is ready."""
        began = {node: self._begin(node) for node in nodes or self.roles}
        for node, said_before in began.items():
            deadline = time.monotonic() + START_SECONDS_MAX
            while READY not in self.out(node).read_text()[said_before:]:
                if self._processes[node].poll() is not None or time.monotonic() > deadline:
                    raise NodeFailed(f"node {node} is not ready\n{self.log_tail(node)}")
                time.sleep(POLL_SECONDS)

    def kill(self, node: int) -> None:
        """End a process at once, as kill -9 does."""
        process = self._processes.pop(node, None)
        if process is not None:
            with suppress(ProcessLookupError):
                process.kill()
            process.wait()

    def pause(self, node: int) -> None:
        self._processes[node].send_signal(signal.SIGSTOP)

    def resume(self, node: int) -> None:
        self._processes[node].send_signal(signal.SIGCONT)

    def stop(self, node: int) -> int:
        """Stop a node in good order; return its exit code."""
        process = self._processes.pop(node)
        process.send_signal(signal.SIGTERM)
        return process.wait(START_SECONDS_MAX)

    def is_running(self, node: int) -> bool:
        return node in self._processes and self._processes[node].poll() is None

    def bootstrap(self, *nodes: int) -> str:
        """Return the addresses of these brokers, or of all."""
        brokers = [node for node in nodes or self.roles if BROKER in self.roles[node]]
        return ",".join(f"127.0.0.1:{self.ports[node]}" for node in brokers)

    def controller_address(self, node: int) -> str:
        return f"127.0.0.1:{self._controller_ports[node]}"

    def voter(self, node: int) -> Voter:
        """Return a controller as a voter."""
        endpoint = Endpoint(_LISTENER, "127.0.0.1", self._controller_ports[node])
        identity = find(FileSystem(), str(self.folder / str(node)))
        directory_id = UUID(int=(0xABCDEF << 96) + node) if identity is None else identity.directory_id
        return Voter(ReplicaKey(NodeId(node), directory_id), (endpoint,))

    def config(self, node: int) -> Path:
        return self.folder / f"{node}.properties"

    def out(self, node: int) -> Path:
        return self.folder / f"{node}.out"

    def log(self, node: int) -> Path:
        return self.folder / f"{node}.log"

    def log_tail(self, node: int, lines: int = 30) -> str:
        return "\n".join(self.log(node).read_text().splitlines()[-lines:])

    def elections(self) -> int:
        """Return the newest epoch that any node has logged."""
        lines = [
            line for node in self.roles if self.log(node).exists() for line in self.log(node).read_text().split("\n")
        ]
        elected = [line for line in lines if '"quorum leader"' in line]
        return max((int(line.partition('"epoch": ')[2].partition(",")[0]) for line in elected), default=0)

    def _begin(self, node: int) -> int:
        script = Path(sys.executable).with_name("riverlog")
        with ExitStack() as files:
            out = files.enter_context(self.out(node).open("ab"))
            log = files.enter_context(self.log(node).open("ab"))
            said_before = out.tell()
            command = [str(script), "serve", "--config", str(self.config(node))]
            self._processes[node] = subprocess.Popen(
                command, stdout=out, stderr=log, stdin=subprocess.DEVNULL, cwd=ROOT, env=dict(os.environ)
            )
        return said_before

    def _configure(self, node: int, role: str, settings: Mapping[str, str]) -> None:
        listeners = [f"PLAINTEXT://127.0.0.1:{self.ports[node]}"] if BROKER in role else []
        if CONTROLLER in role:
            listeners.append(f"{_LISTENER}://{self.controller_address(node)}")
        given = {
            "process.roles": role,
            "node.id": str(node),
            "listeners": ",".join(listeners),
            "controller.listener.names": _LISTENER,
            "controller.quorum.bootstrap.servers": ",".join(self.controller_address(each) for each in self.voters),
            "log.dirs": str(self.folder / str(node)),
            "metrics.port": "-1",
            "default.replication.factor": "1",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            **settings,
        }
        self.config(node).write_text("".join(f"{name}={value}\n" for name, value in given.items()))


def _free_ports(count: int) -> list[int]:
    """Find ports that nobody listens on, all at once so that none comes twice."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
