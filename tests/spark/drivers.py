"""Drivers of Spark as processes: told what to run, frozen, thawed and killed with all that they have started."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Self

import pyspark

from tests.support.node import ROOT
from tests.support.waiting import until

READY_SECONDS_MAX: Final = 300.0
"""A JVM on a machine that has much else to do."""
TOO_SLOW: Final = "Python worker failed to connect back"
"""Spark gives a Python process ten seconds to start, and not every machine does."""


@dataclass(frozen=True)
class Query:
    """What a driver is told to run; `query` is the name, also of the group."""

    query: str
    bootstrap: str
    checkpoint: str
    input: str
    output: str
    records_max: int


@dataclass(frozen=True)
class File:
    """A file whose pipelines a driver is told to run; `query` is the name by which they are stopped."""

    query: str
    bootstrap: str
    checkpoints: str
    file: str


class Driver:
    """One driver: the process, its JVM, its Python workers, and a folder that is all of its local disk."""

    def __init__(self, folder: Path, *, master: str = "local[2,4]") -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self._out, self._log = folder.with_suffix(".out"), folder.with_suffix(".log")
        self.running: dict[str, Query | File] = {}
        self.may_end = [TOO_SLOW]
        """Problems after which a query is started again."""
        self._known_ends: Counter[str] = Counter()
        command = [
            sys.executable,
            "-m",
            "tests.spark.driver",
            json.dumps({"master": master, "folder": str(folder)}),
        ]
        with self._out.open("wb") as out, self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=log,
                cwd=ROOT,
                env={**os.environ, **_environment(folder)},
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    # What it is told, and tells -----------------------------------------------------------------------------------

    def run(self, *queries: Query | File) -> None:
        """Start queries, as soon as the driver is there."""
        for query in queries:
            self.running[query.query] = query
            self._tell(asdict(query))

    def stop(self, name: str) -> None:
        """Stop a query in good order."""
        self._tell({"stop": name})
        self.until_ended(name)

    def until_ended(self, name: str) -> str | None:
        """Wait until a query has ended, forget it, and give the problem that it had."""
        until(lambda: self.ends(name) != [], self.tail, seconds_max=READY_SECONDS_MAX)
        problem = self.ends(name)[0]
        del self.running[name]
        self._known_ends[name] += 1
        return problem

    def state(self, checkpoint: str) -> dict[str, int]:
        """Return the state of a query, by key, as the last commit has it."""
        before = len(self._told("state"))
        self._tell({"state": checkpoint})
        until(lambda: len(self._told("state")) > before, self.tail, seconds_max=READY_SECONDS_MAX)
        weights: dict[str, int] = self._told("state")[-1]["state"]
        return weights

    def until_ready(self) -> Self:
        """Wait until it has a session."""
        until(lambda: bool(self._told("ready")), self.tail, seconds_max=READY_SECONDS_MAX)
        return self

    def ends(self, name: str) -> list[str | None]:
        """Return how a query ended since it was told to run: None, or the problem."""
        ends = [fact["problem"] for fact in self._told("ended") if fact["ended"] == name]
        return ends[self._known_ends[name] :]

    def check(self) -> None:
        """Fail where the driver or a query has ended that nobody has stopped; start again what may end."""
        assert self._process.poll() is None, self.tail()
        for name, query in list(self.running.items()):
            for problem in self.ends(name):
                assert any(each in (problem or "") for each in self.may_end), f"{name} ended\n{self.tail()}"
                self._known_ends[name] += 1
                self._tell(asdict(query))

    def tail(self, lines: int = 60) -> str:
        """Return the last lines of what the driver told and logged."""
        texts = [path.read_text(errors="replace") for path in (self._out, self._log)]
        return "\n".join(line[:1_000] for text in texts for line in text.splitlines()[-lines:])

    def _tell(self, fact: dict[str, Any]) -> None:
        pipe: IO[bytes] | None = self._process.stdin
        assert pipe is not None
        pipe.write(json.dumps(fact).encode() + b"\n")
        pipe.flush()

    def _told(self, kind: str) -> list[dict[str, Any]]:
        lines = self._out.read_text().splitlines(keepends=True)
        facts = [json.loads(line) for line in lines if line.startswith("{") and line.endswith("\n")]
        return [fact for fact in facts if kind in fact]

    # What is done to it -------------------------------------------------------------------------------------------

    def kill(self) -> None:
        """End all its processes as kill -9 does, and wait until none is left."""
        deadline = time.monotonic() + READY_SECONDS_MAX
        while pids := self.processes():
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            with suppress(ChildProcessError):
                self._process.poll()
            assert time.monotonic() < deadline, f"{pids} outlive kill -9"
        self._process.wait()
        if self._process.stdin is not None:
            with suppress(BrokenPipeError):
                self._process.stdin.close()

    def freeze(self) -> None:
        """Stop all of it."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Continue as if nothing had been."""
        self._signal(signal.SIGCONT)

    def lose_disk(self) -> None:
        """Delete all that it has written to its disk, after its end."""
        shutil.rmtree(self.folder)

    def processes(self) -> list[int]:
        """Return the driver, its JVM and its workers: all that is in the session that it began."""
        return [pid for pid, session, state in _all_processes() if session == self._process.pid and state != "Z"]

    def executors(self) -> list[int]:
        """Return the executors that are processes of their own."""
        return [pid for pid in self.processes() if b"CoarseGrainedExecutorBackend" in _command(pid)]

    def owner_of(self, port: int, to: int) -> int:
        """Find the process of the driver that has a connection from this port to the other one, and waits for it."""
        found: list[int] = []

        def look() -> bool:
            sockets = {f"socket:[{inode}]" for inode in _inodes(port, to)}
            found[:] = [pid for pid in self.processes() if sockets & set(_open_files(pid))]
            return bool(found)

        until(look, lambda: f"nobody has a connection from port {port} to {to}\n{self.tail()}")
        return found[0]

    def _signal(self, number: signal.Signals) -> None:
        for pid in self.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, number)


def _environment(folder: Path) -> dict[str, str]:
    """Return variables by which all is written there, as nobody tidies up behind kill -9, and all starts quickly.

    SPARK_HOME gets a folder `work` where executors are processes, so it is one of our own. Without `python` in it
    workers import the installed package, which is compiled, and not one that lies in a zip.
    """
    home = folder / "home"
    home.mkdir()
    for each in Path(pyspark.__file__).parent.iterdir():
        if each.name not in ("python", "work"):
            (home / each.name).symlink_to(each)
    java = f"-Djava.io.tmpdir={folder} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    return {
        "SPARK_HOME": str(home),
        "TMPDIR": str(folder),
        "JAVA_TOOL_OPTIONS": java,
        "PYSPARK_PYTHON": sys.executable,  # also where executors are processes: they do not know which Python has us
    }


def _all_processes() -> list[tuple[int, int, str]]:
    """Return the id, the session and the state of every process."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                state, _, _, session, *_ = (folder / "stat").read_text().rpartition(")")[2].split()
                found.append((int(folder.name), int(session), state))
    return found


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _open_files(pid: int) -> list[str]:
    names = []
    with suppress(OSError):  # it has ended
        for each in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):  # it was closed
                names.append(os.readlink(each))
    return names


def _inodes(port: int, to: int) -> list[str]:
    """Name the sockets between two ports of this machine; a port alone may be that of several connections."""
    tables = [Path(f"/proc/net/{name}").read_text().splitlines()[1:] for name in ("tcp", "tcp6")]
    sockets = [line.split() for table in tables for line in table]
    return [fields[9] for fields in sockets if (_port(fields[1]), _port(fields[2])) == (port, to)]


def _port(address: str) -> int:
    return int(address.rpartition(":")[2], 16)
