"""A client process of the benchmark: at what pace it sends, and what. Whole parts are tried end to end."""

import asyncio
import itertools
import json
from dataclasses import asdict

import pytest

from riverlog.cli.load.client import (
    TIMER_GRAIN_SECONDS,
    ClientLoad,
    ClientOutcome,
    Latencies,
    bursts,
    sample_values,
    with_security,
)
from riverlog.client.network.security import Login, Security, Tls
from tests.support.virtual_time import run


def share(**given: float | None) -> ClientLoad:
    return ClientLoad(part="produce", bootstrap="b", topic="t", **given)  # type: ignore[arg-type]  # numbers all


def moments(plan: ClientLoad, *, busy_seconds: float = 0.0) -> list[list[float]]:
    """Return the bursts, as moments since the first; between two of them the sender is busy for a while."""

    async def scenario() -> list[list[float]]:
        loop = asyncio.get_running_loop()
        began = loop.time()
        seen = []
        async for burst in bursts(plan, loop.time):
            seen.append([round(moment - began, 6) for moment in burst])
            await asyncio.sleep(busy_seconds)
        return seen

    return run(scenario())


def test_without_a_rate_bursts_follow_one_another_until_all_is_sent() -> None:
    assert [len(burst) for burst in moments(share(records=250))] == [100, 100, 50]


def test_large_records_go_one_by_one() -> None:
    assert [len(burst) for burst in moments(share(records=3, record_bytes=1_000_000))] == [1, 1, 1]


def test_time_ends_it_as_well() -> None:
    assert len(moments(share(seconds=1.0), busy_seconds=0.25)) == 4


def test_at_a_rate_each_record_has_its_moment() -> None:
    seen = list(itertools.chain(*moments(share(records=5, rate=10.0))))
    assert seen == pytest.approx([0.0, 0.1, 0.2, 0.3, 0.4], abs=TIMER_GRAIN_SECONDS)
    assert len(list(itertools.chain(*moments(share(seconds=2.0, rate=10.0))))) == 20


def test_a_record_that_is_late_counts_from_when_it_was_due() -> None:
    first, second, *_ = moments(share(records=30, rate=10.0), busy_seconds=1.0)
    assert first == [0.0]
    assert second == pytest.approx([number / 10 for number in range(1, 11)])


@pytest.mark.parametrize("size", [8, 99, 100, 10_000_000])
def test_values_have_their_size(size: int) -> None:
    values = sample_values(size)
    assert {len(next(values)) for _ in range(3)} == {size}


def test_values_differ_and_come_again() -> None:
    values = sample_values(100)
    first = [next(values) for _ in range(1_000)]
    assert len(set(first)) == 1_000
    assert next(values) == first[0]


def test_what_goes_through_a_pipe_arrives_whole() -> None:
    plan = ClientLoad(part="consume", bootstrap="b", topic="t", ranges=[(0, 1, 2)], producer={"acks": "all"})
    assert asdict(ClientLoad(**json.loads(json.dumps(asdict(plan))))) == {**asdict(plan), "ranges": [[0, 1, 2]]}
    outcome = ClientOutcome(1, 2, 3.0, 4.0, [(7, 1)], 7)
    arrived = ClientOutcome(**json.loads(json.dumps(asdict(outcome)))).latencies
    assert (arrived.counts, arrived.largest) == (Latencies({7: 1}, 7).counts, 7)


@pytest.mark.parametrize(
    "security", [Security(Tls(authority="PEM"), Login("PLAIN", "u", "p")), Security(tls=Tls()), Security(login=None)]
)
def test_security_reaches_a_process_as_it_was(security: Security) -> None:
    sent = json.loads(
        json.dumps(asdict(ClientLoad(part="", bootstrap="b", topic="t", producer={"security": security})))
    )
    assert with_security(sent["producer"]) == {"security": security}
    assert with_security({"acks": "1"}) == {"acks": "1"}
