"""Samples become medians, ranges, ratios and a verdict; what was not measured says why."""

import json
from pathlib import Path

import pytest

from bench.machine import Machine
from bench.nodes import Riverlog
from bench.report import Circumstances, as_json, markdown, ratio, verdict
from bench.runner import Column, Entrant, Sample
from bench.trial import Better, Line, Row

RATE = Row("rate", "MB/s", Better.HIGHER, 1.3)
TIME = Row("p99", "ms", Better.LOWER, 0.5)
PLAIN = Row("CPU", "s/GB", Better.LOWER)
GAIN = Row("rate", "x", Better.HIGHER, own_reach=100.0)
SEEN = Circumstances(
    date="2026-01-02 03:04",
    command="python -m bench",
    machine=Machine(2, "a processor", 24.0, "6.1", "3.11"),
    clients="a client 1.0",
    load_average=(0.5, 0.4, 0.3),
    runs=3,
    seconds=5.0,
    minutes=12.34,
)


def column(*rates: float, others_cores: float = 0.0) -> Column:
    return Column([Sample({"rate": rate, "p99": 10 / rate, "CPU": 1.0}, others_cores) for rate in rates])


@pytest.mark.parametrize(
    ("ours", "theirs", "row", "expected"),
    [
        (13, 10, RATE, "reached"),
        (12, 10, RATE, "near"),
        (10, 10, RATE, "missed"),
        (20, 10, TIME, "reached"),
        (18, 10, TIME, "near"),
        (17, 10, TIME, "missed"),
        (10, 99, PLAIN, ""),
        (100, 999, GAIN, "reached"),
        (90, 1, GAIN, "near"),
        (80, 1, GAIN, "missed"),
    ],
)
def test_a_ratio_or_a_number_is_judged_in_the_row_s_direction(
    ours: float, theirs: float, row: Row, expected: str
) -> None:
    assert verdict({"riverlog": column(ours), "Kafka": column(theirs)}, row) == expected


def test_a_number_of_our_own_needs_no_peer_and_a_ratio_does() -> None:
    alone = {"riverlog": column(100)}
    assert verdict(alone, GAIN) == "reached"
    assert verdict(alone, RATE) == ""
    assert verdict({"riverlog": Column(absence="FAILED: it broke")}, GAIN) == ""


def test_the_report_says_how_long_it_took_and_which_aims_are_our_own() -> None:
    line = Line("batching", "about", lambda _: {}, (GAIN,), ours_only=True)
    text = markdown([line], {"batching": {"riverlog": column(120)}}, [], SEEN)
    assert "all of it took 12.3 minutes." in text
    cells = [[cell.strip() for cell in row.split("|")[1:-1]] for row in text.splitlines()]
    assert ["batching", "rate, x", "120", "-", "", "≥ 100 itself", "reached"] in cells


def test_the_ratio_is_that_of_the_medians() -> None:
    assert ratio({"riverlog": column(10, 90, 30), "Kafka": column(15, 1, 20)}, RATE) == 2.0
    assert ratio({"riverlog": column(10)}, RATE) is None
    assert ratio({"riverlog": column(10), "Kafka": Column(absence="NOT RUN: no Java")}, RATE) is None


def test_a_number_that_one_of_them_does_not_have_is_left_open() -> None:
    line = Line("spark", "about", lambda _: {}, (RATE, GAIN))
    ours, theirs = column(120), Column([Sample({}, 0.0)])
    text = markdown([line], {"spark": {"riverlog": ours, "Kafka": theirs}}, [], SEEN)
    cells = [[cell.strip() for cell in row.split("|")[1:-1]] for row in text.splitlines()]
    assert ["spark", "rate, MB/s", "120", "-", "", "≥ 1.3", ""] in cells
    assert ["", "rate, x", "120", "-", "", "≥ 100 itself", "reached"] in cells


def test_what_is_the_machine_s_own_has_no_ratio() -> None:
    own = Row("rate", "MB/s", Better.NEITHER)
    columns = {"riverlog": column(10), "Kafka": column(20)}
    assert ratio(columns, own) is None
    assert verdict(columns, own) == ""


def report(riverlog: Column, kafka: Column) -> str:
    line = Line("produce", "about", lambda _: {}, (RATE, TIME, PLAIN))
    return markdown([line], {"produce": {"riverlog": riverlog, "Kafka": kafka}}, [], SEEN)


def test_the_table_shows_median_range_ratio_and_aim() -> None:
    rows = [
        [cell.strip() for cell in row.split("|")[1:-1]]
        for row in report(column(1300, 1200, 1400), column(1000)).splitlines()
    ]
    assert ["produce", "rate, MB/s", "1,300 (1,200-1,400)", "1,000", "1.30", "≥ 1.3", "reached"] in rows
    assert ["", "p99, ms", "0.008 (0.007-0.008)", "0.010", "0.77", "≤ 0.5", "missed"] in rows
    assert ["", "CPU, s/GB", "1.00 (1.00-1.00)", "1.00", "1.00", "", ""] in rows


def test_a_disturbed_sample_is_marked_and_explained() -> None:
    text = report(column(5.0, others_cores=0.5), column(5.0))
    assert "| 5.00 † " in text
    assert "† others used more than 0.15 of a core" in text
    assert "†" not in report(column(5.0), column(5.0))


def test_what_was_not_measured_says_why_once() -> None:
    text = report(column(5.0), Column(absence="NOT RUN: no Java is installed"))
    assert "| NOT RUN " in text
    assert text.count("Kafka NOT RUN: no Java is installed (all lines)") == 1


def test_a_line_that_failed_in_a_later_run_has_failed() -> None:
    broken = column(5.0)
    broken.absence = "FAILED: it broke"
    text = report(column(5.0), broken)
    assert "| FAILED " in text
    assert "reached" not in text
    assert ratio({"riverlog": column(5.0), "Kafka": broken}, RATE) is None


def test_lines_that_failed_for_the_same_reason_are_named_together() -> None:
    lines = [Line(name, "about", lambda _: {}, (RATE,)) for name in ("one", "two", "three")]
    columns = {line.name: {"riverlog": Column(absence="FAILED: it broke")} for line in lines[:2]}
    text = markdown(lines, columns | {"three": {"riverlog": column(1.0)}}, [], SEEN)
    assert text.endswith("- riverlog FAILED: it broke (one, two)\n")


def test_the_json_keeps_every_sample() -> None:
    line = Line("produce", "about", lambda _: {}, (RATE,))
    columns = {"produce": {"riverlog": column(1, 2, 3), "Kafka": column(4)}}
    kept = json.loads(as_json([line], columns, [Entrant(Riverlog(Path()), version="1.0")], SEEN))
    samples = kept["lines"]["produce"]["columns"]["riverlog"]["samples"]
    assert [sample["values"]["rate"] for sample in samples] == [1, 2, 3]
    assert kept["lines"]["produce"]["rows"]["rate"]["ratio"] == 0.5
    assert kept["contenders"]["riverlog"]["version"] == "1.0"
    assert kept["contenders"]["riverlog"]["command"].startswith("riverlog dev")
