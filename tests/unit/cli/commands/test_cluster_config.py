"""`cluster config`: what is refused before any broker is asked, and where values come from."""

import pytest

from riverlog.cli.commands.cluster_config import SOURCES
from riverlog.cli.main import main
from riverlog.cli.terminal.exits import ExitCode
from riverlog.client.admin.admin import ConfigSource


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("cluster config set", "nothing to change: write NAME=VALUE, or --delete NAME"),
        (
            "cluster config set log.retention.ms",
            "cluster config set needs name=value, but 'log.retention.ms' was given",
        ),
        (
            "cluster config set --entity-type brokers",
            "cluster config set has no option --entity-type; these are settings",
        ),
    ],
)
def test_mistakes_are_one_sentence(line: str, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(line.split()) == ExitCode.USAGE
    assert capsys.readouterr().err.startswith(f"riverlog: {sentence}")


def test_sources_are_kafkas() -> None:
    assert SOURCES.keys() <= set(ConfigSource.__members__)
