"""Percentiles from buckets: right to within a hundredth, whatever the numbers are, and over several processes."""

from hypothesis import given
from hypothesis import strategies as st

from riverlog.cli.load.latencies import PERCENTILES, Latencies, bucket_of, last_of

microseconds = st.integers(0, 10**10)


def counted(values: list[int]) -> Latencies:
    latencies = Latencies()
    for value in values:
        latencies.add(value)
    return latencies


@given(microseconds)
def test_a_bucket_holds_its_latency_and_is_narrow(latency: int) -> None:
    last = last_of(bucket_of(latency))
    assert latency <= last <= latency * 1.01
    assert bucket_of(last) == bucket_of(latency)
    assert bucket_of(last + 1) == bucket_of(latency) + 1


@given(st.lists(microseconds, min_size=1), st.sampled_from([*PERCENTILES.values(), 0.0, 1.0]))
def test_a_percentile_is_a_value_that_was_seen_or_a_little_above(values: list[int], share: float) -> None:
    exact = next(each for number, each in enumerate(sorted(values), 1) if number >= share * len(values))
    assert exact <= counted(values).at(share) <= exact * 1.01


@given(st.lists(microseconds), st.lists(microseconds))
def test_merging_is_as_good_as_counting_together(some: list[int], others: list[int]) -> None:
    merged = counted(some)
    merged.merge(counted(others))
    together = counted(some + others)
    assert (merged.counts, merged.largest) == (together.counts, together.largest)


def test_what_is_shown_is_in_milliseconds() -> None:
    shown = counted([*range(1, 1001)]).milliseconds()
    assert list(shown) == ["p50", "p95", "p99", "p99.9", "max"]
    assert shown["p50"] == 0.501  # the end of the bucket 500-501
    assert shown["max"] == 1.0


def test_a_clock_that_went_back_counts_as_no_time() -> None:
    assert counted([-5]).counts == {0: 1}


def test_nothing_seen_is_nothing() -> None:
    assert Latencies().at(0.99) == 0
