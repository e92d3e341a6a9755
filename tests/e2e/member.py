"""A member of a group as a program of its own, so that it can be killed: `python -m tests.e2e.member confluent ...`.

It reads, commits what it has read, and prints what happened as lines of JSON: [what, partitions or offsets]. On SIGTERM
it leaves in good order.
"""

import argparse
import asyncio
import json
import signal
import sys
from contextlib import AsyncExitStack
from typing import Any, Final

import confluent_kafka

import riverlog
from riverlog.client.errors import KafkaError, Unreachable
from riverlog.model.ids import TopicPartition

_RETRY_SECONDS: Final = 0.1


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("client", choices=["confluent", "riverlog"])
    for name in ("bootstrap", "group", "protocol", "topic"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--session-ms", type=int, default=2_000)
    given = parser.parse_args()
    if given.client == "confluent":
        _confluent(given)
    else:
        asyncio.run(_riverlog(given))


def tell(what: str, *, about: Any) -> None:
    print(json.dumps([what, about]), flush=True)


def _confluent(given: argparse.Namespace) -> None:
    settings: dict[str, Any] = {
        "bootstrap.servers": given.bootstrap,
        "group.id": given.group,
        "group.protocol": given.protocol,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "reconnect.backoff.max.ms": 200,
        "log_level": 0,
    }
    if given.protocol == "classic":
        settings |= {
            "partition.assignment.strategy": "cooperative-sticky",
            "session.timeout.ms": given.session_ms,
            "heartbeat.interval.ms": 200,
        }
    stopping: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: stopping.append(number))
    consumer = confluent_kafka.Consumer(settings)

    def note(what: str) -> Any:
        return lambda _consumer, partitions: tell(what, about=[each.partition for each in partitions])

    consumer.subscribe([given.topic], on_assign=note("assigned"), on_revoke=note("revoked"), on_lost=note("lost"))
    while not stopping:
        messages = [message for message in consumer.consume(200, 0.1) if message.error() is None]
        if not messages:
            continue
        tell("read", about=[(message.partition(), message.offset()) for message in messages])
        behind = {message.partition(): message.offset() + 1 for message in messages}
        offsets = [confluent_kafka.TopicPartition(given.topic, index, at) for index, at in behind.items()]
        try:
            consumer.commit(offsets=offsets, asynchronous=False)
        except confluent_kafka.KafkaException as error:
            tell("refused", about=str(error))
        else:
            tell("committed", about=list(behind.items()))
    consumer.close()


async def _riverlog(given: argparse.Namespace) -> None:
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)

    def note(what: str) -> Any:
        return lambda partitions: tell(what, about=[each.partition for each in partitions])

    async with AsyncExitStack() as stack:
        consumer = await _reaching(stack, given)
        consumer.subscribe(
            [given.topic], on_assigned=note("assigned"), on_revoked=note("revoked"), on_lost=note("lost")
        )
        while not stopping.is_set():
            try:
                records = await consumer.poll(100, max_records=200)
                if not records:
                    continue
                tell("read", about=[(record.partition, record.offset) for record in records])
                behind = {record.partition: record.offset + 1 for record in records}
                await consumer.commit({TopicPartition(given.topic, index): at for index, at in behind.items()})
            except KafkaError as error:
                tell("refused", about=str(error))
            else:
                tell("committed", about=list(behind.items()))


async def _reaching(stack: AsyncExitStack, given: argparse.Namespace) -> riverlog.Consumer:
    """Wait for a node that is away just now: this client says so at its start, where librdkafka tries again itself."""
    while True:
        consumer = riverlog.Consumer(
            given.bootstrap,
            group=given.group,
            group_protocol=given.protocol,
            auto_offset_reset="earliest",
            auto_commit=False,
            session_timeout_ms=given.session_ms,
            heartbeat_interval_ms=200,
        )
        try:
            return await stack.enter_async_context(consumer)
        except Unreachable:
            await asyncio.sleep(_RETRY_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
