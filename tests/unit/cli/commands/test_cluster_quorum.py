"""What is typed about voters; the changes themselves are made in the tests of docs/clusters.md."""

import pytest

from riverlog.cli.main import main
from riverlog.cli.terminal.exits import ExitCode


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (["cluster", "quorum", "add", "c4:9093"], "'c4:9093' is no controller; write ID@HOST:PORT:DIRECTORY-ID"),
        (["cluster", "quorum", "add", "4@c4:9093:winged"], "'winged' is no directory id"),
        (["cluster", "quorum", "add", "4@c4:0"], "is no controller"),
        (["cluster", "quorum", "remove", "c4"], "'c4' is no controller; write ID:DIRECTORY-ID"),
        (["cluster", "quorum", "remove", "4:winged"], "'winged' is no directory id"),
        (["cluster", "unregister", "-1"], "unregister has no option -1"),
        (["cluster", "unregister", "b"], "'b' is no broker; write its id"),
        (["cluster", "unregister", "99999999999"], "'99999999999' is no broker"),
        (["cluster", "unregister", "4", "--bootstrap-controller", "h:p"], "is no bootstrap address"),
    ],
)
def test_a_mistake_is_one_sentence(command: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command) == ExitCode.USAGE
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1


def test_controllers_that_do_not_answer_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cluster", "unregister", "4", "--bootstrap-controller", "127.0.0.1:1"]) == ExitCode.UNREACHABLE
    assert "127.0.0.1:1" in capsys.readouterr().err
