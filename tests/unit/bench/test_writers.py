"""One transaction after the other by plain requests, each readable in the end."""

import pytest

from bench.lines import select
from bench.trial import Failed
from bench.writers import bare
from tests.support.trials import short_trial


def test_transactions_are_timed_and_readers_get_to_the_end() -> None:
    with short_trial() as trial:
        values = bare(trial)
    (line,) = select(["transactions-bare"])
    assert values.keys() == {row.name for row in line.rows}
    assert min(values[name] for name in ("rate", "p50", "p99")) > 0


def test_a_request_that_is_refused_fails_the_run() -> None:
    with (
        short_trial(transaction_max_timeout_ms=1_000) as trial,
        pytest.raises(Failed, match="InitProducerIdRequest was answered with invalid transaction timeout"),
    ):
        bare(trial)
