"""What transactions of many writers cost, beside one transaction for each writer: ours alone, no other broker has them.

In both ways a round has as many writers as the line says, each on a connection that stays open, and each writes one
record into a partition of its own. Shared: all join one batch, and their owner commits it. Alone: each has a
transactional id, and commits for itself. Requests are sent as they are, so that connecting, which takes a client far
longer than all of this, does not drown it.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from statistics import median
from typing import Final, TypeVar

from bench import clients
from bench.clients import fresh_topic
from bench.transactions import expect_readable
from bench.trial import Failed, Stopwatch, Trial, Values
from bench.writers import Writer, ask, connected, initialized, producer_in, write
from riverlog.client.errors import KafkaError
from riverlog.client.network.connection import Connection
from riverlog.model.transactions import ProducerIdentity
from riverlog.wire.messages.end_transaction import EndTransactionMember, EndTransactionRequest
from riverlog.wire.messages.join_transaction import JoinTransactionRequest

FIRST_ROUNDS: Final = 5

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Batch:
    """How long all members of a batch took to join it, and its owner to commit it."""

    join_seconds: float
    end_seconds: float


def shared(trial: Trial, *, members: int) -> Values:
    """Write batches by members that one owner commits, then the same with a transaction for each of them."""
    with fresh_topic(trial.node, partitions=members) as topic:
        try:
            return asyncio.run(_compare(trial, topic, members))
        except KafkaError as error:
            raise Failed(f"a transaction of {members} writers: {error}") from error


async def _compare(trial: Trial, topic: str, members: int) -> Values:
    async with connected(trial.node, members) as lines:
        pipeline = Pipeline(lines, topic, await initialized(lines[0]))
        batches, together = await _rounds(trial, pipeline.write_batch)
        writers = [Writer(line, topic, index, *await initialized(line)) for index, line in enumerate(lines)]
        alone, apart = await _rounds(trial, lambda _: _all(writer.write_alone() for writer in writers))
    written = members * (len(batches) + len(alone))
    expect_readable(
        lambda: clients.end_offset(trial.node, topic, members, committed=True), records=written, markers=written
    )
    return {
        "join": median(each.join_seconds for each in batches) * 1e3,
        "end": median(each.end_seconds for each in batches) * 1e3,
        "rate": _rate(batches, together),
        "alone": _rate(alone, apart),
        "gain": _rate(batches, together) / _rate(alone, apart),
        "CPU": _cpu_ms(batches, together),
        "CPU alone": _cpu_ms(alone, apart),
    }


class Pipeline:
    """The owner of a transactional id, on the first line, and its members, one on each."""

    def __init__(self, lines: list[Connection], topic: str, owned: tuple[str, ProducerIdentity]) -> None:
        self._lines = lines
        self._topic = topic
        self._transactional_id, self._owner = owned

    async def write_batch(self, number: int) -> Batch:
        """Make every member join and write, each step by all of them at once, and commit what they wrote."""
        begun = time.monotonic()
        members = await _all(self._join(line, number, task) for task, line in enumerate(self._lines))
        joined = time.monotonic()
        await _all(
            write(line, self._topic, task, self._transactional_id, member)
            for task, (line, member) in enumerate(zip(self._lines, members, strict=True))
        )
        written = time.monotonic()
        await ask(
            self._lines[0],
            EndTransactionRequest(
                self._transactional_id,
                self._owner.id,
                self._owner.epoch,
                "bench",
                number,
                committed=True,
                members=[EndTransactionMember(*member) for member in members],
            ),
        )
        return Batch(joined - begun, time.monotonic() - written)

    async def _join(self, line: Connection, number: int, task: int) -> ProducerIdentity:
        request = JoinTransactionRequest(
            self._transactional_id, self._owner.id, self._owner.epoch, "bench", number, task, attempt=0
        )
        return producer_in(await ask(line, request))


async def _rounds(trial: Trial, write: Callable[[int], Awaitable[Result]]) -> tuple[list[Result], Stopwatch]:
    """Write round after round until the time is up; the first ones are not timed."""
    rounds = [await write(number) for number in range(FIRST_ROUNDS)]
    stopwatch = Stopwatch(trial.node)
    deadline = time.monotonic() + trial.seconds
    while len(rounds) == FIRST_ROUNDS or time.monotonic() < deadline:
        rounds.append(await write(len(rounds)))
    stopwatch.stop()
    return rounds, stopwatch


async def _all(steps: Iterable[Awaitable[Result]]) -> list[Result]:
    return await asyncio.gather(*steps)


def _rate(rounds: list[Result], stopwatch: Stopwatch) -> float:
    return (len(rounds) - FIRST_ROUNDS) / stopwatch.seconds


def _cpu_ms(rounds: list[Result], stopwatch: Stopwatch) -> float:
    return stopwatch.cpu_seconds * 1e3 / (len(rounds) - FIRST_ROUNDS)
