"""Colour where it is seen and wanted."""

import io

import pytest

from riverlog.cli.terminal.colours import shows_colours, wrong


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")


def test_a_terminal_shows_red() -> None:
    assert wrong("lost", Terminal()) == "\x1b[31mlost\x1b[0m"
    assert wrong("lost", io.StringIO()) == "lost"


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_who_wants_none_gets_none(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    assert not shows_colours(Terminal())
