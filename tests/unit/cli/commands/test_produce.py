"""`produce`: what is refused before any broker is asked. Sending is tried end to end."""

from pathlib import Path

import pytest

from riverlog.cli.commands.produce import CODECS
from riverlog.cli.main import main
from riverlog.cli.terminal.exits import ExitCode


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            ["--key", "k", "--key-separator", ":"],
            "--key and --key-separator exclude each other: the key is either fixed or in the line",
        ),
        (["--key-separator", ""], "--key-separator needs at least one character"),
        (["--key-separator", r"\q"], r"'\q' is not an escape; known are \n \r \t \0 \\ and \xNN"),
        (["--header", "h"], "--header needs name=value, but 'h' was given"),
        (["-X", "linger.ms=soon"], "linger.ms takes a number, not 'soon'"),
    ],
)
def test_mistakes_are_one_sentence(
    options: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "empty"
    path.touch()
    assert main(["produce", "orders", "--file", str(path), *options]) == ExitCode.USAGE
    assert capsys.readouterr() == ("", f"riverlog: {sentence}\n")


@pytest.mark.parametrize(
    "options", [["--acks", "2"], ["--compression", "brotli"], ["--rate", "0"], ["--partition", "-1"]]
)
def test_values_out_of_range_name_the_option(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["produce", "orders", *options]) == ExitCode.USAGE
    assert options[0] in capsys.readouterr().err


def test_a_missing_file_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["produce", "orders", "--file", "/no/such"]) == ExitCode.FAILED
    assert capsys.readouterr().err == "riverlog: there is no file or folder /no/such; check the path\n"


def test_every_codec_of_the_wire_can_be_chosen() -> None:
    assert CODECS == ["none", "gzip", "snappy", "lz4", "zstd"]
