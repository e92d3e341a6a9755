"""The table of lines, what the command line makes of it, and the page that explains it."""

import re
from pathlib import Path

import pytest

from bench.__main__ import parse
from bench.lines import COLD_LINE, LINES, WARM_UP_LINES, select

PAGE = Path(__file__).parents[3] / "docs" / "performance.md"


def test_every_line_has_a_name_of_its_own() -> None:
    assert len({line.name for line in LINES}) == len(LINES)


def test_a_family_is_chosen_by_its_first_word_in_the_order_of_the_table() -> None:
    assert [line.name for line in select(["small-1x100", "startup", "consume"])] == [
        "startup",
        "consume-100",
        "consume-1k",
        "small-1x100",
    ]


def test_lines_are_named_behind_the_options_and_all_are_measured_without_a_name() -> None:
    assert [line.name for line in parse(["--runs", "1", "tail-reads", "disk"]).lines] == ["tail-reads", "disk"]
    assert parse([]).lines == list(LINES)


def test_a_row_has_one_aim_at_most() -> None:
    assert [row for line in LINES for row in line.rows if row.reach is not None and row.own_reach is not None] == []


def test_a_line_that_does_not_exist_is_refused_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["smal"])
    assert "there is no line smal; known are startup, memory," in capsys.readouterr().err


@pytest.mark.parametrize("wrong", [["--runs", "0"], ["--seconds", "0"], ["--seconds", "-1"], ["--only", "redpanda"]])
def test_numbers_and_names_out_of_range_are_refused(wrong: list[str]) -> None:
    with pytest.raises(SystemExit):
        parse(wrong)


def test_the_quick_form_only_means_fewer_and_shorter_runs() -> None:
    quick, full = parse(["--quick"]), parse([])
    assert (quick.runs, quick.seconds) == (2, 1.0)
    assert (full.runs, full.seconds) == (3, 4.0)
    assert quick.lines == full.lines == list(LINES)
    chosen = parse(["--quick", "--runs", "7", "--seconds", "3"])
    assert (chosen.runs, chosen.seconds) == (7, 3.0)


def test_the_lines_for_warming_up_share_a_node() -> None:
    assert all(line.on_shared_node for line in [COLD_LINE, *WARM_UP_LINES])


def test_the_page_explains_exactly_the_lines_there_are() -> None:
    explained = re.findall(r"^\| `([a-z0-9-]+)` \|", PAGE.read_text(), re.MULTILINE)
    assert explained == [line.name for line in LINES]
