"""Tables fit their terminal, and lose nothing elsewhere."""

import pytest

from riverlog.cli.terminal.colours import Wrong
from riverlog.cli.terminal.tables import draw_table, fitted, table_lines

ROWS = [["orders", 3, "a" * 40], ["größe", 12, None]]


def test_without_a_width_nothing_is_cut() -> None:
    assert table_lines(["topic", "partitions", "note"], ROWS, None) == [
        "topic    partitions   note",
        "─" * 62,
        f"orders            3   {'a' * 40}",
        "größe            12",
    ]


def test_long_cells_are_cut_to_the_width() -> None:
    lines = table_lines(["topic", "partitions", "note"], ROWS, 30)
    assert lines == [
        "topic   partitions  note",
        "─" * 30,
        "orders           3  aaaaaaaaa…",
        "größe           12",
    ]


def test_wide_characters_take_two_places() -> None:
    assert table_lines(["a", "b"], [["注文", "x"]], None)[2] == "注文   x"
    assert table_lines(["a", "b"], [["注文" * 9, "x"]], 12)[2] == "注文注文…  x"


def test_missing_numbers_do_not_make_a_column_text() -> None:
    assert table_lines(["lag"], [[5], ["-"], [None]], None)[2:] == ["  5", "  -", ""]


@pytest.mark.parametrize(
    ("widths", "room", "cut"),
    [
        ([6, 40, 40], 50, [6, 22, 22]),
        ([6, 40, 41], 51, [6, 23, 22]),
        ([6, 4], 50, [6, 4]),
        ([9, 9, 9], 5, [6, 6, 6]),
        ([], 5, []),
    ],
)
def test_the_widest_are_cut_first(widths: list[int], room: int, cut: list[int]) -> None:
    assert fitted(widths, room, [0] * len(widths)) == cut


def test_numbers_are_never_cut_nor_what_is_to_stay_whole() -> None:
    rows = [["orders-of-yesterday", 1234567890123, "x" * 30]]
    lines = table_lines(["topic", "a-long-heading-here", "note"], rows, 30)
    assert lines[0] == "topic    a-long-headi…  note"
    assert lines[2] == "orders…  1234567890123  xxxxx…"
    assert table_lines(["topic", "n", "note"], rows, 30, whole=1)[2] == "orders-of-yesterday  1234567890123  xxxxx…"


def test_what_is_wrong_is_red_on_a_terminal_alone(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    draw_table(["leader"], [[Wrong("none")], ["[red]1[/red]"]], title="Partitions")
    assert capsys.readouterr().out.splitlines() == ["Partitions", "leader", "─" * 12, "none", "[red]1[/red]"]
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    draw_table(["leader"], [[Wrong("none")]])
    assert capsys.readouterr().out.splitlines()[2] == "\x1b[31mnone\x1b[0m"
