"""Members write batches that their owner commits, and as many writers commit for themselves; all of it is readable."""

import pytest

from bench.lines import select
from bench.shared import shared
from bench.trial import Failed
from tests.support.trials import short_trial


@pytest.mark.parametrize("members", [1, 8])
def test_both_ways_are_measured_and_readers_get_to_the_end(members: int) -> None:
    with short_trial() as trial:
        values = shared(trial, members=members)
    (line,) = select([f"shared-transactions-{members}"])
    assert values.keys() == {row.name for row in line.rows}
    assert min(values[name] for name in ("join", "end", "rate", "alone", "gain")) > 0


def test_a_request_that_is_refused_fails_the_run() -> None:
    with (
        short_trial(transaction_max_timeout_ms=1_000) as trial,
        pytest.raises(Failed, match="InitProducerIdRequest was answered with invalid transaction timeout"),
    ):
        shared(trial, members=1)
