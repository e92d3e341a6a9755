"""The command line, run in this process with files as standard streams, or by itself on a terminal."""

import os
import pty
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from riverlog.cli.main import main
from tests.support.node import Node

PROGRAM: Final = Path(sys.executable).with_name("riverlog")
SECONDS_MAX: Final = 30


def environment(node: Node) -> dict[str, str]:
    return {**os.environ, "RIVERLOG_BOOTSTRAP_SERVERS": node.bootstrap, "NO_COLOR": "1"}


class Shell:
    """Runs commands in this process, which saves starting a Python for each, with files as standard streams."""

    def __init__(self, capture: pytest.CaptureFixture[bytes]) -> None:
        self._capture = capture

    def run(self, *arguments: str, given: bytes = b"") -> tuple[int, bytes, bytes]:
        """Return the exit code and what was written to standard output and standard error."""
        kept = os.dup(0)
        with tempfile.TemporaryFile() as stream:
            stream.write(given)
            stream.seek(0)
            os.dup2(stream.fileno(), 0)
            try:
                code = main(arguments)
            finally:
                os.dup2(kept, 0)
                os.close(kept)
        out, err = self._capture.readouterr()
        return code, out, err

    def done(self, *arguments: str, given: bytes = b"") -> bytes:
        """Run a command that succeeds silently but for its output."""
        code, out, err = self.run(*arguments, given=given)
        assert (code, err) == (0, b"")
        return out

    def refused(self, *arguments: str, code: int, given: bytes = b"") -> str:
        """Return the one sentence with which a command ended."""
        ended, out, err = self.run(*arguments, given=given)
        sentence = err.decode()
        assert (ended, out) == (code, b"")
        assert sentence.startswith("riverlog: ")
        assert sentence.count("\n") == 1
        return sentence


def on_terminal(node: Node, *arguments: str, typed: bytes = b"", stop_at: str | None = None) -> tuple[int, str]:
    """Run with a terminal as input and output; give the exit code and what was on the screen.

    With `stop_at` the program is interrupted once that is on the screen.
    """
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [PROGRAM, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env={**environment(node), "TERM": "xterm"}
    )
    os.close(theirs)
    os.write(ours, typed)
    screen = b""
    while stop_at is not None and stop_at.encode() not in screen:
        screen += os.read(ours, 4096)
    if stop_at is not None:
        process.send_signal(signal.SIGINT)
    rest = read_all(ours)
    return process.wait(SECONDS_MAX), screen.decode().replace("\r\n", "\n") + rest


def read_all(terminal: int) -> str:
    """Read a terminal's other end until the last program has left it."""
    screen = b""
    with suppress(OSError):  # Linux says EIO when the other side has gone
        while block := os.read(terminal, 4096):
            screen += block
    os.close(terminal)
    return screen.decode().replace("\r\n", "\n")
