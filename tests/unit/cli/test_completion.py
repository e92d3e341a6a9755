"""What can follow on a command line, but for names that a cluster is asked for."""

from pathlib import Path

import pytest

from riverlog.cli import profiles
from riverlog.cli.command_table import COMMANDS
from riverlog.cli.completion import FILES, CompletionWord, complete


def words(line: str) -> list[str]:
    return [each.word for each in complete(line.split(" "))]


@pytest.mark.parametrize(
    ("line", "followed"),
    [
        ("top", ["topics"]),
        ("topics de", ["describe", "delete"]),
        ("cluster config ", ["get", "set"]),
        ("pipelines checkpoints e", ["export"]),
        ("nonsense ", []),
        ("nonsense", []),
        ("consume orders --from", ["--from-beginning", "--from-time"]),
        ("consume orders -o ", ["table", "json", "yaml"]),
        ("produce orders --acks a", ["all"]),
        ("serve --config ", [FILES]),
        ("log dump ", [FILES]),
        ("topics create x --config retention.", ["retention.bytes=", "retention.ms="]),
        ("topics alter x --delete-config retention.", ["retention.bytes", "retention.ms"]),
        ("dev --set num.par", ["num.partitions="]),
        ("cluster config set num.par", ["num.partitions="]),
        ("config explain num.par", ["num.partitions"]),
        ("consume orders -X isol", ["isolation.level="]),
        ("completion f", ["fish"]),
        ("version ", []),
        ("dev --port ", []),
    ],
)
def test_what_follows(line: str, followed: list[str]) -> None:
    assert words(line) == followed


def test_everything_is_explained_where_nothing_is_typed() -> None:
    assert {each.word for each in complete([""])} == {command.words.split()[0] for command in COMMANDS}
    assert all(each.meaning for each in complete([]))
    assert CompletionWord("create", "Create topics") in complete(["topics", ""])


def test_profiles_are_known_without_a_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    profiles.create("prod", {"bootstrap.servers": "a:1"})
    assert words("profile use ") == words("topics list --profile p") == ["prod"]
