"""A riverlog node in a process of its own, for tests that kill, stop and restart it.

The node is started as a user starts it, through the console script beside this Python. `start` returns once the
ready line was printed; a node that ends before that is reported with what it said. Everything it prints goes to
`node.out` and `node.log` in its folder, across restarts.
"""

import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

READY: Final = "riverlog ready "
ROOT: Final = Path(__file__).parents[2]
"""Where programs of the tests are found."""
START_SECONDS_MAX: Final = 20.0
STOP_SECONDS_MAX: Final = 20.0
POLL_SECONDS: Final = 0.01


class NodeFailed(AssertionError):
    """The node did not do what was asked of it; the message ends with its last words."""


class Node:
    """One node process on one data folder. Port 0 takes a free one at the first start; later starts take the same."""

    def __init__(
        self,
        folder: Path,
        *,
        port: int = 0,
        settings: Mapping[str, str] | None = None,
        arguments: tuple[str, ...] = (),
        descriptors_max: int | None = None,
    ) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.settings = dict(settings or {})
        self.arguments = arguments
        self.descriptors_max = descriptors_max
        self.port = port
        self.addresses: dict[str, str] = {}  # of the ready line, by service: kafka, metrics, ...
        self._process: subprocess.Popen[bytes] | None = None
        self._out = folder / "node.out"
        self._log = folder / "node.log"

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    @property
    def bootstrap(self) -> str:
        """Return the address for clients, as host:port."""
        return self.addresses["kafka"]

    @property
    def pid(self) -> int:
        """Return the process id of the running node."""
        return self._running().pid

    @property
    def alive(self) -> bool:
        """Return whether the process runs."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> Self:
        """Start the process and return once it says that it can be used."""
        assert not self.alive, "the node runs already"
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._out.open("ab") as out, self._log.open("ab") as log:
            said_before = out.tell()
            self._process = subprocess.Popen(
                self._command(), stdout=out, stderr=log, stdin=subprocess.DEVNULL, cwd=ROOT
            )
        deadline = time.monotonic() + START_SECONDS_MAX
        while not (ready := self._ready_line(said_before)):
            if self._process.poll() is not None:
                raise NodeFailed(
                    f"the node ended with {self._process.returncode} before it was ready\n{self.log_tail()}"
                )
            if time.monotonic() > deadline:
                self.kill()
                raise NodeFailed(f"the node was not ready within {START_SECONDS_MAX} s\n{self.log_tail()}")
            time.sleep(POLL_SECONDS)
        self.addresses = dict(word.split("=", 1) for word in ready.split() if "=" in word)
        if "advertised.listeners" not in self.settings:  # then its own port is what it was told
            self.port = int(self.bootstrap.rpartition(":")[2])
        return self

    def kill(self) -> None:
        """End the process at once, as kill -9 does; a dead node is left alone."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()
            self._process.wait()

    def stop(self) -> int:
        """Ask the node to stop with SIGTERM and give its exit code."""
        process = self._running()
        process.send_signal(signal.SIGTERM)
        try:
            return process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.kill()
            raise NodeFailed(f"the node did not stop within {STOP_SECONDS_MAX} s\n{self.log_tail()}") from None

    def log_tail(self, lines: int = 40) -> str:
        """Return the last lines of what the node printed and logged."""
        return "\n".join(line for path in (self._out, self._log) for line in _text(path).splitlines()[-lines:])

    def _command(self) -> list[str]:
        script = Path(sys.executable).with_name("riverlog")
        command = [str(script), "dev", "--port", str(self.port), "--data", str(self.data), *self.arguments]
        for name, value in self.settings.items():
            command += ["--set", f"{name}={value}"]
        if self.descriptors_max is not None:
            return ["sh", "-c", f'ulimit -n {self.descriptors_max} && exec "$@"', "sh", *command]
        return command

    def _ready_line(self, said_before: int) -> str:
        """Find the whole ready line among what was printed since this start."""
        for line in _text(self._out, said_before).splitlines(keepends=True):
            if line.startswith(READY) and line.endswith("\n"):
                return line
        return ""

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            raise NodeFailed(f"the node does not run\n{self.log_tail()}")
        return self._process


def _text(path: Path, position: int = 0) -> str:
    return path.read_bytes()[position:].decode(errors="replace") if path.exists() else ""
