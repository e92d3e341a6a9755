"""The command line as a transcript: every help page, and what people read when something is wrong, in text files.

`pytest tests/e2e/cli/test_transcripts.py --rewrite` writes down what the commands say now; read the difference as a
stranger would.
"""

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from riverlog.cli.command_table import COMMANDS, GROUPS
from tests.support.node import Node
from tests.support.scenarios import PROMPT, check
from tests.support.shell import Shell

TRANSCRIPTS: Final = sorted(Path(__file__).with_name("transcripts").glob("*.txt"))
WIDTH: Final = 79


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with Node(
        tmp_path_factory.mktemp("transcripts"), settings={"auto.create.topics.enable": "false", "checkpoints.port": "0"}
    ) as node:
        yield node


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_the_commands_say_what_is_written_down(
    path: Path,
    node: Node,
    tmp_path: Path,
    capfdbinary: pytest.CaptureFixture[bytes],
    monkeypatch: pytest.MonkeyPatch,
    *,
    rewrite: bool,
) -> None:
    monkeypatch.setenv("RIVERLOG_BOOTSTRAP_SERVERS", node.bootstrap)
    monkeypatch.setenv("RIVERLOG_CHECKPOINTS", node.addresses["checkpoints"].removeprefix("webhdfs://"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("RIVERLOG_PROFILE", raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    shell = Shell(capfdbinary)

    def play(line: str) -> list[str]:
        code, said = played(shell, line)
        said = said.replace(node.bootstrap, "127.0.0.1:9092").replace(str(tmp_path), "…").replace(str(node.data), "…")
        said = re.sub(r"in \d+\.\d+ s, [\d,]+/s", "in 0.01 s, 100/s", said)
        said = re.sub(r"\(\d+\.\d ms\)", "(0.5 ms)", said)
        return said.splitlines() + ([f"(exit code {code})"] if code else [])

    check(path, play, rewrite=rewrite)


def played(shell: Shell, line: str) -> tuple[int, str]:
    """Run one line: a riverlog command, another program, or what another program says piped into a command."""
    first, pipe, last = line.partition(" | riverlog ")
    if not line.startswith("riverlog ") and not pipe:
        ran = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
        return ran.returncode, ran.stdout + ran.stderr
    given = b""
    if pipe:
        given = subprocess.run(["bash", "-c", first], capture_output=True, check=True).stdout
        line = f"riverlog {last}"
    code, out, err = shell.run(*shlex.split(line)[1:], given=given)
    return code, (out + err).decode()


def test_every_help_page_is_written_down() -> None:
    lines = {line for path in TRANSCRIPTS for line in path.read_text().splitlines()}
    words = ["", *GROUPS, *(command.words for command in COMMANDS)]
    missing = [line for each in words if (line := f"{PROMPT}riverlog {each} --help".replace("  ", " ")) not in lines]
    assert missing == []


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_help_fits_a_terminal(path: Path) -> None:
    page = re.compile(r"^> riverlog .*--help\n((?:  .*\n)+)", re.MULTILINE)
    assert [
        line for text in page.findall(path.read_text()) for line in text.splitlines() if len(line) > WIDTH + 2
    ] == []


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_nobody_reads_what_is_for_programmers(path: Path) -> None:
    text = path.read_text()
    for wrong in ("Traceback", "Usage: riverlog [", "[UNKNOWN", "_EXCEPTION", "Error:", "Try '"):
        assert wrong not in text
    answers = re.findall(r"^  riverlog: (.*)$", text, re.MULTILINE)
    names = [word for answer in answers for word in re.findall(r"\b[a-z]+_[a-z_]+(?:ms|max|min|bytes)\b", answer)]
    assert names == []
