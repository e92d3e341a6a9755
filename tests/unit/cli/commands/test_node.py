"""`dev` and `serve`: what is refused before a node starts. Running nodes are tried end to end."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from riverlog.cli.main import main
from riverlog.cli.terminal.exits import ExitCode

UNUSED = ("rich", "pydantic", "structlog", "riverlog.client", "riverlog.cli.terminal.options", "pathlib", "tempfile")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["dev", "--port", "65536"], "--port takes a number from 0 to 65535, not 65536"),
        (
            ["dev", "--port", "1", "--set", "listeners=PLAINTEXT://:2"],
            "--port and listeners say the same thing; give one of them",
        ),
        (["dev", "--data", "a", "--ephemeral"], "--ephemeral and log.dirs say the same thing; give one of them"),
        (["dev", "--set", "num.partitions"], "--set needs name=value, but 'num.partitions' was given"),
        (
            ["dev", "--set", "num.partitons=3"],
            "there is no setting num.partitons; did you mean num.partitions? "
            "`riverlog config explain` lists every setting",
        ),
        (
            ["serve", "--set", "num.partitions=none"],
            "num.partitions cannot be 'none': it takes a whole number of at least 1. "
            "`riverlog config explain` lists every setting",
        ),
    ],
)
def test_wrong_settings_are_one_sentence(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == ExitCode.USAGE
    assert capsys.readouterr() == ("", f"riverlog: {sentence}\n")


def test_a_missing_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--config", str(tmp_path / "none")]) == ExitCode.FAILED
    assert capsys.readouterr().err == (f"riverlog: there is no file or folder {tmp_path}/none; check the path\n")


@pytest.mark.parametrize("content", [b"=value\n", b"\xff\xfe"])
def test_a_file_that_is_no_configuration_is_named(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "server.properties"
    path.write_bytes(content)
    assert main(["serve", "--config", str(path)]) == ExitCode.USAGE
    assert re.match(f"riverlog: {path}[: ]", capsys.readouterr().err)


@pytest.mark.parametrize("wrong", ["num.partitons=3", "num.partitions=none"])
def test_a_wrong_setting_in_a_file_is_named_with_its_line(
    wrong: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "server.properties"
    path.write_text(f"# mine\nbroker.id=1\n{wrong}\n")
    assert main(["serve", "--config", str(path)]) == ExitCode.USAGE
    assert f" See line 3 of {path}. `riverlog config explain` " in capsys.readouterr().err


def test_starting_a_node_loads_nothing_that_it_does_not_use() -> None:
    program = (
        "import sys\nbefore = set(sys.modules)\nfrom riverlog.cli.command_table import COMMAND_BY_WORDS\n"
        "COMMAND_BY_WORDS['dev'].load()\nimport riverlog.cli.node_process\n"
        f"print('LOADED', *(name for name in {UNUSED!r} if name in sys.modules.keys() - before))"
    )
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True).stdout
    assert out == "LOADED\n"


def test_a_node_does_not_run_without_its_assertions() -> None:
    command = [sys.executable, "-O", "-m", "riverlog", "dev", "--ephemeral", "--port", "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == ExitCode.USAGE
    assert "leaves out the checks that keep records safe" in done.stderr
