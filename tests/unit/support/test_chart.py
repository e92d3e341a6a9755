"""The picture of what was measured: numbers as the page has them, the worse ones to the left of the line."""

import re

from tests.support.chart import PAGE, SHOWN, Pair, measured, picture

PAGE_PART = """
| line | number | riverlog | Kafka | ratio | to reach |  |
|---|---|---|---|---|---|---|
| startup | first, s | 0.182 (0.173-0.486) | 2.98 (2.96-5.77) | 0.06 | ≤ 0.125 | reached |
|  | again, s | 0.172 (0.172-0.174) † | 2.24 (2.11-2.41) † | 0.08 | ≤ 0.125 | reached |
| small-64x1 | rate, /s | 48,880 (1-2) † | 52,290 (1-2) † | 0.93 | ≥ 1.2 | missed |
| spark-start | riverlog, s | 0.542 |  |  |  |
"""


def test_medians_are_read_by_line_and_number() -> None:
    assert measured(PAGE_PART) == {
        ("startup", "first, s"): Pair("0.182", "2.98"),
        ("startup", "again, s"): Pair("0.172", "2.24"),
        ("small-64x1", "rate, /s"): Pair("48,880", "52,290"),
    }


def test_better_is_more_than_one_in_either_direction() -> None:
    assert round(Pair("0.5", "2").factor(less_is_better=True), 9) == 4
    assert round(Pair("1,000", "2,000").factor(less_is_better=False), 9) == 0.5


def test_each_bar_has_both_numbers_and_a_worse_one_its_own_colour() -> None:
    page = PAGE.read_text()
    drawn = picture(page)
    pairs = measured(page)
    for number in SHOWN:
        pair = pairs[number.line, number.name]
        assert f">{pair.riverlog}</text>" in drawn
        assert f">{pair.kafka}</text>" in drawn
    worse = sum(pairs[each.line, each.name].factor(less_is_better=each.less_is_better) < 1 for each in SHOWN)
    assert len(re.findall("#c2703d", drawn)) == worse
