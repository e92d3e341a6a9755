"""What is listed of checkpoints, and what is refused before a store is asked."""

from pathlib import Path

import pytest

from riverlog.checkpoints.remote import RemoteFile
from riverlog.cli.commands.pipelines.checkpoints import checkpoints
from riverlog.cli.main import main
from riverlog.cli.terminal.exits import ExitCode


def test_files_are_added_up_by_checkpoint() -> None:
    found = [
        RemoteFile("/a", True, 0, 0),
        RemoteFile("/a/offsets/9", False, 10, 0),
        RemoteFile("/a/offsets/10", False, 10, 0),
        RemoteFile("/a/commits/9", False, 5, 0),
        RemoteFile("/a/state/0/0/1.zip", False, 100, 0),
        RemoteFile("/a/state/0/0/7", False, 1, 0),
        RemoteFile("/ab/offsets/0", False, 1, 0),
        RemoteFile("/other", False, 1_000, 0),
    ]
    assert checkpoints(iter(found)) == [
        {"checkpoint": "/a", "planned": 10, "committed": 9, "files": 5, "bytes": 126},
        {"checkpoint": "/ab", "planned": 0, "committed": None, "files": 1, "bytes": 1},
    ]


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["list", "orders"], ExitCode.USAGE, "does not begin with a slash"),
        (["list", "/a/../b"], ExitCode.USAGE, "has . or .. in it"),
        (["list"], ExitCode.UNREACHABLE, "no checkpoint store answers at 127.0.0.1:1"),
        (["import", "no such folder", "/a"], ExitCode.USAGE, "is not a folder"),
        (["export", "/a", str(Path(__file__).parent)], ExitCode.USAGE, "is not empty"),
    ],
)
def test_bad_input_gets_one_sentence(
    arguments: list[str], code: ExitCode, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pipelines", "checkpoints", *arguments, "--store", "127.0.0.1:1"]) == code
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1
