"""A worker that copies a topic in transactions, as a program of its own: `python -m tests.e2e.copier --id 1 ...`.

It aborts a transaction now and then, as chance will have it, and reads the portion again. On SIGTERM it leaves in good
order; it ends with FENCED when another one has taken over its transactional id.
"""

import argparse
import asyncio
import random
import signal
import sys
from typing import Final

from riverlog import Consumer, NewRecord, Producer, ProducerFenced, process_exactly_once
from riverlog.client.consumer.fetched_records import ConsumerRecord
from riverlog.client.errors import Unreachable

FENCED: Final = 3


class ChangeOfMind(Exception):
    """The worker does not want this transaction after all."""


def main() -> int:
    parser = argparse.ArgumentParser()
    for name in ("bootstrap", "id", "input", "output", "protocol"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--records", type=int, required=True, help="how many at most are copied in one transaction")
    parser.add_argument("--aborts", type=float, default=0.3, help="how many of the transactions are aborted")
    given = parser.parse_args()
    try:
        asyncio.run(_work(given))
    except ProducerFenced:
        return FENCED
    return 0


async def _work(given: argparse.Namespace) -> None:
    """Copy until all is done; where no node can be reached yet, begin again."""
    while True:
        try:
            return await _copy(given)
        except Unreachable:
            await asyncio.sleep(0.1)


async def _copy(given: argparse.Namespace) -> None:
    chance = random.Random()
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)

    async def copy(record: ConsumerRecord) -> list[NewRecord]:
        if chance.random() < given.aborts / given.records:
            await producer.flush()  # so that there is something to take back
            raise ChangeOfMind
        return [NewRecord(given.output, record.value, key=record.key, partition=record.partition)]

    async with (
        Consumer(
            given.bootstrap,
            group="copiers",
            group_protocol=given.protocol,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            auto_commit=False,
            session_timeout_ms=1_000,
            heartbeat_interval_ms=200,
        ) as consumer,
        Producer(given.bootstrap, transactional_id=given.id, transaction_timeout_ms=20_000) as producer,
    ):
        consumer.subscribe([given.input])
        while not stopping.is_set():
            try:
                await process_exactly_once(consumer, producer, copy, records_max=given.records, stopping=stopping)
            except ChangeOfMind:
                continue


if __name__ == "__main__":
    sys.exit(main())
