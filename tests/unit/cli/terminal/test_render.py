"""Tables for people, JSON lines for programs, YAML for those who ask."""

import json

import pytest

from riverlog.cli.terminal.render import OutputFormat, as_yaml, emit, plural, size_text, time_text
from riverlog.cli.terminal.tables import draw_table

ROWS = [{"name": "orders", "partitions": 3}, {"name": "größe", "partitions": 1}]


def draw() -> None:
    draw_table(["topic", "partitions"], [[row["name"], row["partitions"]] for row in ROWS])


def test_without_a_terminal_rows_are_json_lines(capsys: pytest.CaptureFixture[str]) -> None:
    emit(ROWS, None, draw)
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == ROWS


def test_on_a_terminal_rows_are_text(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    emit(ROWS, None, draw)
    out = capsys.readouterr().out
    assert "orders" in out
    assert "{" not in out


def test_a_chosen_table_is_drawn_anywhere_without_colours(capsys: pytest.CaptureFixture[str]) -> None:
    emit(ROWS, OutputFormat.TABLE, draw)
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == "topic    partitions"
    assert lines[2:4] == ["orders            3", "größe             1"]


def test_yaml_reads_back_as_what_was_meant() -> None:
    rows = [
        {"name": "orders", "isr": [1, 2], "none": None, "empty": [], "quoted": "yes", "number": "12", "path": "/data"},
        {"nested": {"deep": [{"a": 1, "b": "x: y"}]}, "text": "two\nlines # here"},
        {},
    ]
    assert list(as_yaml(rows)) == [
        "- name: orders",
        "  isr:",
        "    - 1",
        "    - 2",
        "  none: null",
        "  empty: []",
        '  quoted: "yes"',
        '  number: "12"',
        '  path: "/data"',
        "- nested:",
        "    deep:",
        "      - a: 1",
        '        b: "x: y"',
        '  text: "two\\nlines # here"',
        "- {}",
    ]


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1_572_864, "1.5 MiB"), (5 * 1024**5, "5120.0 TiB")],
)
def test_sizes_in_words(count: int, text: str) -> None:
    assert size_text(count) == text


def test_counted_nouns() -> None:
    assert plural(1, "record") == "1 record"
    assert plural(1200, "record") == "1,200 records"
    assert plural(0, "record") == "0 records"
    assert plural(1, "batch", "batches") == "1 batch"
    assert plural(2, "batch", "batches") == "2 batches"


def test_a_time_beyond_all_calendars_is_printed_as_the_number_that_it_is() -> None:
    assert [time_text(each) for each in (None, -1, 0, 2**62)] == [None, None, "1970-01-01T00:00:00Z", str(2**62)]
    assert time_text(1_234, "milliseconds") == "1970-01-01T00:00:01.234Z"
