"""What transactions of many writers cost, beside one transaction for each writer: ours alone, no other broker has them.

In both ways a round has as many writers as the line says, each on a connection that stays open, and each writes one
record into a partition of its own. Shared: all join one batch, and their owner commits it. Alone: each has a
transactional id, and commits for itself. Requests are sent as they are, so that connecting, which takes a client far
longer than all of this, does not drown it.
"""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from statistics import median
from typing import Any, Final, TypeVar

from bench import clients
from bench.clients import REQUEST_SECONDS_MAX, fresh_topic
from bench.transactions import SMALL_VALUE, expect_readable
from bench.trial import Failed, Node, Stopwatch, Trial, Values
from riverlog.client.connection import Connection
from riverlog.client.errors import KafkaError, error_code
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import Address, ProducerEpoch, ProducerId
from riverlog.model.transactions import Producer
from riverlog.records.record import BatchBuilder
from riverlog.wire.messages.end_transaction import EndTransactionMember, EndTransactionRequest
from riverlog.wire.messages.end_txn import EndTxnRequest
from riverlog.wire.messages.find_coordinator import FindCoordinatorRequest
from riverlog.wire.messages.init_producer_id import InitProducerIdRequest
from riverlog.wire.messages.join_transaction import JoinTransactionRequest
from riverlog.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from riverlog.world.network import TcpNetwork

FIRST_ROUNDS: Final = 5
TIMEOUT_MS: Final = 60_000
PRODUCE_VERSION_BY_NAME: Final = 12

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Batch:
    """How long all members of a batch took to join it, and its owner to commit it."""

    join_seconds: float
    end_seconds: float


def shared(trial: Trial, *, members: int) -> Values:
    """Let members write batch after batch that one owner commits, then the same with a transaction for each of them."""
    with fresh_topic(trial.node, partitions=members) as topic:
        try:
            return asyncio.run(_compare(trial, topic, members))
        except KafkaError as error:
            raise Failed(f"a transaction of {members} writers: {error}") from error


async def _compare(trial: Trial, topic: str, members: int) -> Values:
    async with _connected(trial.node, members) as lines:
        pipeline = Pipeline(lines, topic, await _initialized(lines[0]))
        batches, together = await _rounds(trial, pipeline.write_batch)
        writers = [Writer(line, topic, index, *await _initialized(line)) for index, line in enumerate(lines)]
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

    def __init__(self, lines: list[Connection], topic: str, owned: tuple[str, Producer]) -> None:
        self._lines = lines
        self._topic = topic
        self._transactional_id, self._owner = owned

    async def write_batch(self, number: int) -> Batch:
        """Let every member join and write, each step by all of them at once, and commit what they wrote."""
        begun = time.monotonic()
        members = await _all(self._join(line, number, task) for task, line in enumerate(self._lines))
        joined = time.monotonic()
        await _all(
            _write(line, self._topic, task, self._transactional_id, member)
            for task, (line, member) in enumerate(zip(self._lines, members, strict=True))
        )
        written = time.monotonic()
        await _ask(
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

    async def _join(self, line: Connection, number: int, task: int) -> Producer:
        request = JoinTransactionRequest(
            self._transactional_id, self._owner.id, self._owner.epoch, "bench", number, task, attempt=0
        )
        return _producer(await _ask(line, request))


class Writer:
    """A producer with a transactional id of its own."""

    def __init__(self, line: Connection, topic: str, partition: int, transactional_id: str, producer: Producer) -> None:
        self._line = line
        self._topic = topic
        self._partition = partition
        self._transactional_id = transactional_id
        self._producer = producer

    async def write_alone(self) -> None:
        """Write one record in a transaction of its own."""
        await _write(self._line, self._topic, self._partition, self._transactional_id, self._producer)
        end = EndTxnRequest(self._transactional_id, self._producer.id, self._producer.epoch, committed=True)
        self._producer = _producer(await _ask(self._line, end))


async def _write(line: Connection, topic: str, partition: int, transactional_id: str, producer: Producer) -> None:
    """Write the first and only record of a producer's transaction, which takes the partition into it."""
    builder = BatchBuilder(producer_id=producer.id, producer_epoch=producer.epoch, base_sequence=0, transactional=True)
    builder.append(None, SMALL_VALUE, timestamp_ms=time.time_ns() // 1_000_000)
    part = PartitionProduceData(partition, memoryview(builder.build()))
    request = ProduceRequest(transactional_id, -1, TIMEOUT_MS, [TopicProduceData(topic, partition_data=[part])])
    response = await line.request(request, version_max=PRODUCE_VERSION_BY_NAME)
    _check(response.responses[0].partition_responses[0].error_code, "Produce")


async def _initialized(line: Connection) -> tuple[str, Producer]:
    """Make up a transactional id and take it over."""
    name = f"bench-{uuid.uuid4().hex[:12]}"
    found = await line.request(FindCoordinatorRequest(name, key_type=1, coordinator_keys=[name]))
    _check(found.coordinators[0].error_code, "FindCoordinator")
    return name, _producer(await _ask(line, InitProducerIdRequest(name, TIMEOUT_MS)))


async def _ask(line: Connection, request: object) -> Any:
    response = await line.request(request)
    _check(response.error_code, type(request).__name__)
    return response


def _check(number: int, what: str) -> None:
    code = error_code(number)
    if code is not ErrorCode.NONE:
        raise Failed(f"{what} was answered with {code.title}")


def _producer(response: Any) -> Producer:
    return Producer(ProducerId(response.producer_id), ProducerEpoch(response.producer_epoch))


@asynccontextmanager
async def _connected(node: Node, count: int) -> AsyncIterator[list[Connection]]:
    """Connect to the node so many times."""
    network, address, seconds = TcpNetwork(), Address(node.host, node.port), REQUEST_SECONDS_MAX
    async with AsyncExitStack() as stack:
        lines: list[Connection] = []
        for _ in range(count):
            line = await Connection.open(
                network, address, client_id="riverlog-bench", connect_seconds=seconds, request_seconds=seconds
            )
            stack.callback(line.close)
            lines.append(line)
        yield lines


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
