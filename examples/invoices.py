"""Orders in, invoices out, each exactly once: a worker that fails in the middle, and one that takes over.

Starts `riverlog dev`, writes orders, and lets a worker write an invoice for each with `process_exactly_once`. It fails
when it has written some invoices of a portion; its successor, under the same transactional id, goes on where the last
portion was committed. A reader of committed records sees one invoice per order, in order; a reader of everything
also sees those that were taken back.
"""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import riverlog
from riverlog import Admin, Consumer, NewRecord, Producer
from riverlog.client.consumer.fetched_records import ConsumerRecord

ORDERS = 1_000
FAILS_AT = 640


class PowerCut(Exception):
    """What happens to the first worker."""


def main() -> None:
    """Tell the story from start to end; every line printed is something that has just happened."""
    with broker() as bootstrap:
        asyncio.run(story(bootstrap))


async def story(bootstrap: str) -> None:
    await take_orders(bootstrap)
    say(f"the shop took {ORDERS} orders")
    try:
        await write_invoices(bootstrap, fails_at=FAILS_AT)
    except PowerCut:
        say(f"the first worker failed at order {FAILS_AT}, in the middle of a transaction")
    await write_invoices(bootstrap)
    say("the second worker took over under the same transactional id, and finished")

    committed = await read_invoices(bootstrap, "read_committed")
    everything = await read_invoices(bootstrap, "read_uncommitted")
    assert committed == [f"invoice for order {number}" for number in range(ORDERS)]
    assert len(everything) > ORDERS
    say(f"read_committed finds {len(committed)} invoices, one per order and in order")
    say(f"read_uncommitted finds {len(everything)}: with those that the first worker could not commit")


async def take_orders(bootstrap: str) -> None:
    async with Admin(bootstrap) as admin:
        await admin.create_topic("orders", partitions=1)
        await admin.create_topic("invoices", partitions=1)
    async with Producer(bootstrap) as producer:
        for number in range(ORDERS):
            producer.send_soon("orders", f"order {number}")


async def write_invoices(bootstrap: str, fails_at: int | None = None) -> None:
    """Work until there is an invoice for every order, or until the worker fails."""
    finished = asyncio.Event()

    async def invoice(order: ConsumerRecord) -> list[NewRecord]:
        if order.offset == fails_at:
            await producer.flush()  # so that there is something to take back
            raise PowerCut
        if order.offset == ORDERS - 1:
            finished.set()
        assert order.value is not None
        return [NewRecord("invoices", b"invoice for " + order.value)]

    async with (
        Consumer(
            bootstrap,
            group="invoicing",
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            auto_commit=False,
        ) as consumer,
        Producer(bootstrap, transactional_id="invoicing-1") as producer,
    ):
        consumer.subscribe(["orders"])
        await riverlog.process_exactly_once(consumer, producer, invoice, records_max=100, stopping=finished)


async def read_invoices(bootstrap: str, isolation_level: str) -> list[str]:
    async with Consumer(bootstrap, isolation_level=isolation_level) as consumer:  # type: ignore[arg-type]
        partitions = await consumer.partitions("invoices")
        consumer.assign(partitions)
        await consumer.seek_to_beginning()
        ends = await consumer.end_offsets(partitions)
        invoices: list[str] = []
        while consumer.held() != ends:
            invoices += [(record.value or b"").decode() for record in await consumer.poll()]
        return invoices


@contextmanager
def broker() -> Iterator[str]:
    """Run a broker in a process of its own; give its address once it is ready."""
    command = [str(Path(sys.executable).with_name("riverlog")), "dev", "--ephemeral", "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    try:
        ready = process.stdout.readline()
        if not ready:
            raise SystemExit("the broker did not start; run `riverlog dev --ephemeral --port 0` to see why")
        yield dict(word.split("=", 1) for word in ready.split() if "=" in word)["kafka"]
    finally:
        process.terminate()
        process.wait(20)
        process.stdout.close()


def say(what: str) -> None:
    print(f"· {what}")


if __name__ == "__main__":
    main()
