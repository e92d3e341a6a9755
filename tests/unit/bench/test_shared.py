"""Members write batches that their owner commits, and as many writers commit for themselves; all of it is readable."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from bench.lines import select
from bench.shared import shared
from bench.trial import Contender, Failed, Trial
from riverlog.testing import running_broker


@dataclass(slots=True)
class Here:
    """A node in a thread of this process."""

    port: int
    data: Path
    host: str = "127.0.0.1"
    pid: int = os.getpid()

    def stop(self) -> None: ...

    def kill(self) -> None: ...


def trial_on(bootstrap: str, folder: str) -> Trial:
    port = int(bootstrap.rpartition(":")[2])
    return Trial(cast(Contender, None), Here(port, Path(folder)), Path(folder), seconds=0.01)


@pytest.mark.parametrize("members", [1, 8])
def test_both_ways_are_measured_and_readers_get_to_the_end(members: int) -> None:
    with running_broker(log_segment_delete_delay_ms=0) as broker:
        values = shared(trial_on(broker.bootstrap_servers, broker.folder), members=members)
    (line,) = select([f"shared-transactions-{members}"])
    assert values.keys() == {row.name for row in line.rows}
    assert min(values[name] for name in ("join", "end", "rate", "alone", "gain")) > 0


def test_a_request_that_is_refused_fails_the_run() -> None:
    with (
        running_broker(log_segment_delete_delay_ms=0, transaction_max_timeout_ms=1_000) as broker,
        pytest.raises(Failed, match="InitProducerIdRequest was answered with invalid transaction timeout"),
    ):
        shared(trial_on(broker.bootstrap_servers, broker.folder), members=1)
