"""The entry: finding commands, help without loading anything, sentences and exit codes."""

import errno
import os
import subprocess
import sys

import pytest

from riverlog.cli.command_table import COMMANDS, GROUPS
from riverlog.cli.main import guarded, main
from riverlog.cli.terminal.exits import MEANINGS, CommandError, ExitCode

HEAVY = ("rich", "click", "asyncio", "riverlog.client", "riverlog.node", "uvloop", "structlog")


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"], ["help"]])
def test_without_a_command_everything_is_listed(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == ExitCode.DONE
    out = capsys.readouterr().out
    for word in {words.split()[0] for words in [*GROUPS, *(command.words for command in COMMANDS)]}:
        assert f"\n  {word} " in out
    for code, meaning in MEANINGS.items():
        assert str(code.value) in out
        assert meaning[:20] in out


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_lists_its_commands(group: str, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (group.split(), [*group.split(), "--help"], ["help", *group.split()]):
        assert main(arguments) == ExitCode.DONE
        out = capsys.readouterr().out
        for command in COMMANDS:
            if command.words.startswith(f"{group} "):
                assert f"\n  {command.words.removeprefix(group).split()[0]} " in out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["topcis"], "riverlog: there is no command 'topcis'; did you mean `riverlog topics`?\n"),
        (["xyz"], "riverlog: there is no command 'xyz'; `riverlog --help` lists what there is\n"),
        (
            ["topics", "crate"],
            "riverlog: there is no command 'topics crate'; did you mean `riverlog topics create`?\n",
        ),
        (
            ["-b", "a:1", "topics", "list"],
            "riverlog: write the command first and its options after it, as in `riverlog topics list -b HOST:PORT`\n",
        ),
    ],
)
def test_what_is_no_command_gets_one_sentence(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == ExitCode.USAGE
    assert capsys.readouterr() == ("", sentence)


def test_bytes_that_are_no_text_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topics", "create", "\udcff"]) == ExitCode.USAGE
    assert capsys.readouterr().err == "riverlog: the argument '\\udcff' is not text in UTF-8\n"


def test_a_stream_that_knows_only_ascii_gets_escapes() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "riverlog", "consume", "--help"],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert b"HOST:PORT,\\u2026" in ended.stdout


def test_a_wrong_option_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version", "--frobnicate"]) == ExitCode.USAGE
    err = capsys.readouterr().err
    assert err == "riverlog: version has no option --frobnicate; `riverlog version --help` shows what it takes\n"


def test_a_call_for_help_behind_a_value_that_looks_like_the_end_of_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["produce", "orders", "--key", "--", "--help"]) == ExitCode.DONE
    out, err = capsys.readouterr()
    assert out.startswith("Usage: riverlog produce [OPTIONS] TOPIC\n")
    assert err == ""


def test_the_other_name_is_used_where_it_was_typed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["/usr/bin/streaming-system"])
    assert main(["topics", "create", "--help"]) == ExitCode.DONE
    out = capsys.readouterr().out
    assert out.startswith("Usage: streaming-system topics create")
    assert "\n  streaming-system topics create orders" in out


def test_trouble_is_a_sentence_and_its_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    def act() -> None:
        raise CommandError("the disk is full; make room", ExitCode.REFUSED)

    assert guarded(act) == ExitCode.REFUSED
    assert capsys.readouterr().err == "riverlog: the disk is full; make room\n"


def test_the_systems_errors_name_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    def act() -> None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), "/no/such")

    assert guarded(act) == ExitCode.FAILED
    assert capsys.readouterr().err == "riverlog: there is no file or folder /no/such; check the path\n"


def test_an_interrupt_is_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    def act() -> None:
        raise KeyboardInterrupt

    assert guarded(act) == ExitCode.INTERRUPTED
    assert capsys.readouterr() == ("", "")


def test_our_own_mistakes_are_not_hidden() -> None:
    def act() -> None:
        raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        guarded(act)


def test_a_reader_that_has_seen_enough_is_no_failure() -> None:
    shell = f"{sys.executable} -m riverlog config explain -o json | head -1; exit ${{PIPESTATUS[0]}}"
    ended = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.count("\n") == 1


@pytest.mark.parametrize("arguments", [["--help"], ["config", "--help"], ["topics", "create", "--help"]])
def test_help_loads_nothing_that_takes_time(arguments: list[str]) -> None:
    program = (
        "import sys\nfrom riverlog.cli.main import main\n"
        f"main({arguments!r})\nprint('LOADED', *(name for name in {HEAVY!r} if name in sys.modules))"
    )
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True).stdout
    assert out.rstrip().splitlines()[-1] == "LOADED"
