"""Pauses grow, are bounded, and begin anew after a batch."""

from random import Random

from riverlog.pipelines.runtime.backoff import FIRST_SECONDS, SECONDS_MAX, Backoff


def test_pauses_double_up_to_a_minute_and_end() -> None:
    backoff = Backoff(20, Random(1))
    pauses = [backoff.failed() for _ in range(21)]
    assert pauses[-1] is None
    for number, pause in enumerate(pauses[:-1]):
        most = min(SECONDS_MAX, FIRST_SECONDS * 2**number)
        assert pause is not None
        assert 0.75 * most <= pause <= most
    assert backoff.failed() is None


def test_a_completed_batch_begins_the_count_anew() -> None:
    backoff = Backoff(2, Random(1))
    for _ in range(5):
        assert backoff.failed() is not None
        second = backoff.failed()
        assert second is not None
        assert second > FIRST_SECONDS
        backoff.completed()


def test_who_is_never_started_again_is_not() -> None:
    assert Backoff(0, Random(1)).failed() is None
