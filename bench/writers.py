"""Transactions by plain requests on connections that stay open: what a broker needs for them, whoever the client is.

A producer's first write takes the partition into its transaction, as clients with the newest rules do, so a
transaction of one record is two requests.
"""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

from bench import clients
from bench.clients import REQUEST_SECONDS_MAX, fresh_topic
from bench.transactions import FIRST_TRANSACTIONS, SMALL_VALUE, expect_readable, timings
from bench.trial import Failed, Node, Stopwatch, Trial, Values
from riverlog.client.errors import KafkaError, error_code
from riverlog.client.network.connection import Connection
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import Address, ProducerEpoch, ProducerId
from riverlog.model.transactions import ProducerIdentity
from riverlog.records.record import BatchBuilder
from riverlog.wire.messages.end_txn import EndTxnRequest
from riverlog.wire.messages.find_coordinator import FindCoordinatorRequest
from riverlog.wire.messages.init_producer_id import InitProducerIdRequest
from riverlog.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from riverlog.world.network import TcpNetwork

TIMEOUT_MS: Final = 60_000
PRODUCE_VERSION_BY_NAME: Final = 12
AGAIN_SECONDS: Final = 0.0005
NOT_YET: Final = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
    }
)


def bare(trial: Trial) -> Values:
    """Commit one transaction of one record after the other, and time each from its write to its commit."""
    with fresh_topic(trial.node) as topic:
        try:
            return asyncio.run(_one_by_one(trial, topic))
        except KafkaError as error:
            raise Failed(f"a transaction: {error}") from error


async def _one_by_one(trial: Trial, topic: str) -> Values:
    taken_ms: list[float] = []
    async with connected(trial.node, 1) as (line,):
        writer = Writer(line, topic, 0, *await initialized(line))
        for _ in range(FIRST_TRANSACTIONS):
            await writer.write_alone()
        stopwatch = Stopwatch(trial.node)
        deadline = time.monotonic() + trial.seconds
        while len(taken_ms) < 2 or time.monotonic() < deadline:
            begun = time.monotonic()
            await writer.write_alone()
            taken_ms.append((time.monotonic() - begun) * 1e3)
        stopwatch.stop()
    written = FIRST_TRANSACTIONS + len(taken_ms)
    expect_readable(lambda: clients.end_offset(trial.node, topic, 1, committed=True), records=written, markers=written)
    return timings(taken_ms, stopwatch)


class Writer:
    """A producer with a transactional id of its own."""

    def __init__(
        self, line: Connection, topic: str, partition: int, transactional_id: str, producer: ProducerIdentity
    ) -> None:
        self._line = line
        self._topic = topic
        self._partition = partition
        self._transactional_id = transactional_id
        self._producer = producer

    async def write_alone(self) -> None:
        """Write one record in a transaction of its own."""
        await write(self._line, self._topic, self._partition, self._transactional_id, self._producer)
        end = EndTxnRequest(self._transactional_id, self._producer.id, self._producer.epoch, committed=True)
        self._producer = producer_in(await ask(self._line, end))


async def write(
    line: Connection, topic: str, partition: int, transactional_id: str, producer: ProducerIdentity
) -> None:
    """Write the first and only record of a producer's transaction, as soon as the last one is complete."""
    builder = BatchBuilder(producer_id=producer.id, producer_epoch=producer.epoch, base_sequence=0, transactional=True)
    builder.append(None, SMALL_VALUE, timestamp_ms=time.time_ns() // 1_000_000)
    part = PartitionProduceData(partition, memoryview(builder.build()))
    request = ProduceRequest(transactional_id, -1, TIMEOUT_MS, [TopicProduceData(topic, partition_data=[part])])
    while True:
        response = await line.request(request, version_max=PRODUCE_VERSION_BY_NAME)
        if await _answered(response.responses[0].partition_responses[0].error_code, "Produce"):
            return


async def initialized(line: Connection) -> tuple[str, ProducerIdentity]:
    """Make up a transactional id and take it over."""
    name = f"bench-{uuid.uuid4().hex[:12]}"
    while True:
        found = await line.request(FindCoordinatorRequest(name, key_type=1, coordinator_keys=[name]))
        if await _answered(found.coordinators[0].error_code, "FindCoordinator"):
            return name, producer_in(await ask(line, InitProducerIdRequest(name, TIMEOUT_MS)))


async def ask(line: Connection, request: object) -> Any:
    """Send a request, again if it comes too early, and give the answer."""
    while True:
        response = await line.request(request)
        if await _answered(response.error_code, type(request).__name__):
            return response


async def _answered(number: int, what: str) -> bool:
    """Return whether it was done, after a pause if it has to be asked again."""
    code = error_code(number)
    if code in NOT_YET:
        await asyncio.sleep(AGAIN_SECONDS)
        return False
    if code is not ErrorCode.NONE:
        raise Failed(f"{what} was answered with {code.title}")
    return True


def producer_in(response: Any) -> ProducerIdentity:
    """Return the producer that an answer names."""
    return ProducerIdentity(ProducerId(response.producer_id), ProducerEpoch(response.producer_epoch))


@asynccontextmanager
async def connected(node: Node, count: int) -> AsyncIterator[list[Connection]]:
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
