"""The line that reads a topic as a table."""

from bench.lines import select
from bench.scans import kernel_rows_per_second, scan
from tests.support.trials import short_trial


def test_every_row_of_the_line_is_measured() -> None:
    (line,) = select(["scan"])
    with short_trial() as trial:
        values = scan(trial)
    assert set(values) == {row.name for row in line.rows}
    assert all(value > 0 for value in values.values())


def test_the_kernel_is_timed_without_its_loading() -> None:
    assert kernel_rows_per_second(1_000) > 0
