"""What came to windows and joins, batch by batch."""

from threading import Event, Thread

from riverlog.pipelines.limits import ACCOUNTED_BATCHES_MAX
from riverlog.pipelines.operators.row_counts import Counts, RowCounter, total


def test_batches_are_added_up_by_operator() -> None:
    accounts = RowCounter()
    accounts.take("run", 0, {"riverlog:1": {"rows": 5, "timeless": 1, "pairs": 4, "late": 0}})
    accounts.take("run", 1, {"riverlog:1": {"rows": 3, "timeless": 0, "pairs": 3, "late": 2}, "mine": {"x": 1}})
    accounts.take("run", 1, {"riverlog:2": {"rows": 1, "timeless": 0, "pairs": 1, "late": None}})
    assert accounts.operators() == {"riverlog:1": Counts(5, 1, 4, 0), "riverlog:2": Counts(1, 0, 1, 0)}


def test_a_batch_that_is_told_twice_counts_once() -> None:
    accounts = RowCounter()
    for _ in range(2):
        accounts.take("run", 7, {"riverlog:1": {"rows": 5, "timeless": 0, "pairs": 5, "late": 1}})
    accounts.take("run", 8, {})
    assert accounts.operators() == {"riverlog:1": Counts(5, 0, 5, 1)}


def test_rows_and_pairs_of_a_sliding_window_come_apart() -> None:
    accounts = RowCounter()
    accounts.take("run", 0, {"riverlog:1:rows": {"rows": 5, "timeless": 1}, "riverlog:1": {"pairs": 12, "late": 3}})
    assert accounts.operators() == {"riverlog:1": Counts(5, 1, 12, 3)}


def test_pairs_are_late_or_in_time() -> None:
    both = total([Counts(2, 0, 4, 1), Counts(1, 0, 1, 1)])
    assert both == Counts(3, 0, 5, 2)
    assert both.in_time == 3


def test_what_is_kept_does_not_grow_and_no_batch_counts_twice() -> None:
    accounts = RowCounter()
    count = 3 * ACCOUNTED_BATCHES_MAX
    told = {"riverlog:1": {"rows": 5, "timeless": 0, "pairs": 5, "late": 1}}
    for batch in range(count):
        accounts.take("run", batch, told)
    for batch in (0, count // 2, count - 100, count - 1):
        accounts.take("run", batch, told)
    assert accounts.operators() == {"riverlog:1": Counts(5 * count, 0, 5 * count, count)}
    kept = accounts._accounts["run"]
    assert len(kept.batches) == ACCOUNTED_BATCHES_MAX


def test_who_asks_beside_a_batch_is_told() -> None:
    accounts = RowCounter()
    is_over = Event()

    def tell() -> None:
        batch = 0
        while not is_over.is_set():
            accounts.take("run", batch, {f"riverlog:{batch % 7}": {"rows": 1, "timeless": 0, "pairs": 1, "late": 0}})
            batch += 1

    telling = Thread(target=tell)
    telling.start()
    try:
        for _ in range(300):
            accounts.operators()
    finally:
        is_over.set()
        telling.join()
