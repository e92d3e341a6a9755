"""Broker processes: started on loopback, watched until they answer, stopped as an operator would.

The first Metadata answer that names a broker counts as the start: before it no client can do anything.
"""

import contextlib
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import riverlog
from bench.cache import compiled
from bench.trial import Contender, Failed, Node, NotRun

HOST: Final = "127.0.0.1"
DATA_NAME: Final = "data"
LOG_NAME: Final = "broker.log"
DELETE_AT_ONCE: Final = "log.segment.delete.delay.ms=0"
"""For every contender: deleted topics must not still lie in the page cache when the next run is measured."""
COPYING: Final = """
import sys
from riverlog.model import limits
limits.SENDFILE_BYTES_MIN = sys.maxsize
from riverlog.cli.main import main
sys.exit(main())
"""
READY_SECONDS_MAX: Final = 180
STOP_SECONDS_MAX: Final = 60
POLL_SECONDS: Final = 0.005
LOG_CHARACTERS_SHOWN: Final = 600


class BrokerProcess:
    """A broker in a process of its own, on a folder that holds its data and what it prints."""

    def __init__(self, process: "subprocess.Popen[bytes]", port: int, folder: Path) -> None:
        self._process = process
        self._log = folder / LOG_NAME
        self.host = HOST
        self.port = port
        self.pid = process.pid
        self.data = folder / DATA_NAME

    @classmethod
    def start(cls, command: Sequence[str], port: int, folder: Path, **environment: str) -> "BrokerProcess":
        """Start the command and return at its first Metadata answer; raise Failed if none comes."""
        with (folder / LOG_NAME).open("ab") as output:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=os.environ | environment
            )
        node = cls(process, port, folder)
        try:
            node._wait_until_ready()
        except BaseException:
            process.kill()
            process.wait()
            raise
        return node

    def stop(self) -> None:
        """Ask it to end; a broker that does not end within a minute is killed and reported."""
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise Failed(f"the broker did not stop within {STOP_SECONDS_MAX} s of SIGTERM") from None

    def kill(self) -> None:
        """End it as a crash does: it can write nothing more."""
        self._process.kill()
        self._process.wait()

    def service(self, name: str) -> str:
        """Return the address at which a node of ours serves something, from what it says when all of it is ready."""
        address = re.compile(rf"^riverlog ready .*\b{name}=(\S+)", re.MULTILINE)
        deadline = time.monotonic() + READY_SECONDS_MAX
        while (found := address.search(self._log.read_text(errors="replace"))) is None:
            if time.monotonic() > deadline:
                raise Failed(f"the node did not say where it serves {name}: {self._last_words()}")
            time.sleep(POLL_SECONDS)
        return found[1]

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + READY_SECONDS_MAX
        while not answers_metadata(self.host, self.port):
            if self._process.poll() is not None:
                raise Failed(f"the broker ended with code {self._process.returncode}: {self._last_words()}")
            if time.monotonic() > deadline:
                raise Failed(f"no Metadata answer within {READY_SECONDS_MAX} s: {self._last_words()}")
            time.sleep(POLL_SECONDS)

    def _last_words(self) -> str:
        return " ".join(self._log.read_text(errors="replace")[-LOG_CHARACTERS_SHOWN:].split())


class Riverlog:
    """Our node, as `riverlog dev` starts it."""

    name = "riverlog"
    command = f"riverlog dev --set {DELETE_AT_ONCE}"
    warm_seconds = 5.0
    durable_topic: Mapping[str, str] = {"durability": "fsync"}

    def __init__(self, cache: Path, *, copying: bool = False, settings: Sequence[str] = ()) -> None:
        """Describe it; `copying` starts nodes that read into memory what others leave to sendfile."""
        self._executable = Path(sys.executable).with_name("riverlog")
        self._program = [sys.executable, "-c", COPYING] if copying else [str(self._executable)]
        self._settings = [DELETE_AT_ONCE, *settings]
        self._cache = cache
        self._environment = compiled(cache)

    def prepare(self) -> str:
        """Compile the package and give its version, with the commit where this is a checkout."""
        if not self._executable.exists():
            raise NotRun("the riverlog command is not installed beside this Python; run `make setup`")
        package = str(Path(riverlog.__file__).parent)
        compiling = [sys.executable, "-m", "compileall", "-q", package]
        subprocess.run(compiling, env=os.environ | self._environment, check=True)
        git = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]
        commit = subprocess.run(git, capture_output=True, text=True).stdout.strip() if shutil.which("git") else ""
        return f"{riverlog.__version__} ({commit})" if commit else riverlog.__version__

    def format(self, folder: Path) -> None:
        """Do nothing: a node formats its folder when it first starts."""

    def copying(self) -> "Riverlog":
        """Return the same broker without sendfile."""
        return Riverlog(self._cache, copying=True)

    def flushing(self) -> "Riverlog":
        """Return the same broker with every acknowledged record of every topic on the medium."""
        return Riverlog(self._cache, settings=["durability=fsync"])

    def start(self, folder: Path) -> BrokerProcess:
        """Start a node on this folder."""
        port = free_port()
        place = ["--port", str(port), "--data", str(folder / DATA_NAME)]
        chosen = [word for setting in self._settings for word in ("--set", setting)]
        command = [*self._program, "dev", *place, *chosen]
        return BrokerProcess.start(command, port, folder, **self._environment)


@contextlib.contextmanager
def running(contender: Contender, folder: Path) -> Iterator[Node]:
    """Format a new folder, start a node on it, and stop the node in the end."""
    folder.mkdir(parents=True, exist_ok=True)
    contender.format(folder)
    node = contender.start(folder)
    try:
        yield node
    finally:
        node.stop()


def answers_metadata(host: str, port: int) -> bool:
    """Ask for Metadata (version 1, no topics) and tell whether the answer names a broker."""
    request = struct.pack(">hhihi", 3, 1, 0, -1, 0)
    try:
        with socket.create_connection((host, port), timeout=READY_SECONDS_MAX) as connection:
            connection.sendall(struct.pack(">i", len(request)) + request)
            answer = connection.recv(12, socket.MSG_WAITALL)
    except OSError:
        return False
    return len(answer) == 12 and bool(struct.unpack(">iii", answer)[2])


def free_port() -> int:
    """Find a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
