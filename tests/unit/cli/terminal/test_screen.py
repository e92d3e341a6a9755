"""`--watch` draws over itself on a terminal, and goes on in a pipe."""

import pytest

from riverlog.cli.terminal.screen import redrawn, show_again


def test_a_pipe_gets_one_after_another(capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(2):
        with redrawn(first=number == 0):
            print(f"lag {number}")
    assert capsys.readouterr().out == "lag 0\nlag 1\n"


def test_a_terminal_is_drawn_anew_in_its_place(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    for number in range(2):
        with redrawn(first=number == 0):
            print(f"lag {number}")
    assert capsys.readouterr().out == "\x1b[2J\x1b[Hlag 0\x1b[K\n\x1b[J\x1b[Hlag 1\x1b[K\n\x1b[J"


def test_what_is_higher_than_the_terminal_is_cut(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("LINES", "5")
    monkeypatch.setenv("COLUMNS", "80")
    with redrawn(first=False):
        print("\n".join(map(str, range(9))))
    lines = [line.removesuffix("\x1b[K") for line in capsys.readouterr().out.removeprefix("\x1b[H").splitlines()]
    assert lines == ["0", "1", "2", "… 6 more lines; a pipe gets all of them", "\x1b[J"]


def test_once_without_watch_and_until_interrupted_with_it(capsys: pytest.CaptureFixture[str]) -> None:
    shown: list[int] = []

    def show() -> None:
        shown.append(len(shown))
        if len(shown) == 4:
            raise KeyboardInterrupt

    show_again(show, watch=False, interval=0.0)
    assert shown == [0]
    with pytest.raises(KeyboardInterrupt):
        show_again(show, watch=True, interval=0.0)
    assert shown == [0, 1, 2, 3]
    assert capsys.readouterr().out == ""
