"""A batch of members in processes of their own: some are killed, some come back from the dead, drivers are replaced."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Consumer

from riverlog import ProducerFenced, SharedTransactions, TopicPartition
from riverlog.client.producer.shared_transactions import CommittedBatch, Membership, SharedBatch
from tests.e2e.clients import create_topic
from tests.support.node import ROOT, Node
from tests.support.waiting import until

MEMBERS: Final = (8, 2)
"""How many tasks each batch has."""
RECORDS: Final = 200
PARTITIONS: Final = 3


class Task:
    """One attempt's process."""

    def __init__(self, node: Node, batch: SharedBatch, task: int, attempt: int) -> None:
        arguments = ["--bootstrap", node.bootstrap, "--batch", json.dumps(asdict(batch)), "--task", str(task)]
        arguments += ["--attempt", str(attempt), "--records", str(RECORDS)]
        command = [sys.executable, "-m", "tests.e2e.task", *arguments]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)

    def heard(self) -> str:
        """Wait for the attempt's next word."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def go_on(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def finished(self) -> Membership:
        """Wait until it has written all, and return who it was."""
        assert self.heard() == "joined"
        self.go_on()
        assert self.heard() == "wrote"
        self.go_on()
        producer_id, epoch = json.loads(self.heard())
        self.go_on()
        assert self.process.wait(30) == 0
        return Membership((producer_id, epoch))

    def kill(self) -> None:
        """End it without a word, if it has not ended by itself, and close all that led to it."""
        self.process.kill()
        self.process.communicate(timeout=30)


@contextmanager
def tasks_of(node: Node, batch: SharedBatch, attempt: int) -> Iterator[list[Task]]:
    """Start an attempt of every task; those that are left at the end are killed."""
    tasks = [Task(node, batch, task, attempt) for task in range(MEMBERS[batch.number])]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.kill()


def expected(*batches: int) -> list[str]:
    tasks = [(batch, task) for batch in batches for task in range(MEMBERS[batch])]
    return sorted(f"{batch} {task} {number}" for batch, task in tasks for number in range(RECORDS))


def committed(node: Node, count: int) -> list[str]:
    """Read as many committed records as there should be, and what comes after them."""
    consumer = Consumer(
        {"bootstrap.servers": node.bootstrap, "group.id": "reader", "isolation.level": "read_committed"}
        | {"auto.offset.reset": "earliest", "enable.partition.eof": True, "enable.auto.commit": False}
    )
    values: list[str] = []
    ended: set[int] = set()

    def at_the_end() -> bool:
        for message in consumer.consume(1_000, 0.1):
            if message.error() is not None:
                ended.add(message.partition())
            else:
                ended.discard(message.partition())
                values.append(message.value().decode())
        return len(ended) == PARTITIONS and len(values) >= count

    try:
        consumer.subscribe(["out"])
        until(at_the_end, lambda: f"{len(values)} of {count} records", seconds_max=60)
    finally:
        consumer.close()
    return sorted(values)


@pytest.mark.timeout(240)
def test_a_batch_counts_once_whoever_dies(tmp_path: Path) -> None:
    asyncio.run(commit_whoever_dies(tmp_path))


async def commit_whoever_dies(tmp_path: Path) -> None:
    with Node(tmp_path, settings={"metrics.port": "-1"}) as node:
        create_topic(node.bootstrap, "out", partitions=PARTITIONS)
        async with SharedTransactions(node.bootstrap, "pipeline", incarnation="a") as first:
            batch = first.batch(0)
            with tasks_of(node, batch, attempt=0) as tasks:
                killed, zombie = tasks[0], tasks[1]
                for task in (killed, zombie):
                    assert task.heard() == "joined"
                    task.go_on()
                    assert task.heard() == "wrote"
                killed.process.kill()
                retried = [Task(node, batch, task, attempt=1) for task in range(2)]
                tasks += retried
                memberships = [task.finished() for task in tasks[2:]]
                offsets = {TopicPartition("out", 0): 7}
                await first.commit(batch, memberships, group="pipeline", offsets=offsets, marker=b"0")
                zombie.go_on()
                assert zombie.heard() in ("INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED")
            assert committed(node, len(expected(0))) == expected(0)

            abandoned = first.batch(1)
            with tasks_of(node, abandoned, attempt=0) as tasks:
                memberships = [task.finished() for task in tasks]
            node.kill()
            node.start()
            async with SharedTransactions(node.bootstrap, "pipeline", incarnation="a") as second:
                with pytest.raises(ProducerFenced):
                    await first.commit(abandoned, memberships)
                assert await second.committed() == CommittedBatch(0, b"0")
                batch = second.batch(1)
                with tasks_of(node, batch, attempt=1) as tasks:
                    await second.commit(batch, [task.finished() for task in tasks], marker=b"1")
                node.kill()
                node.start()
                assert await second.committed() == CommittedBatch(1, b"1")
        assert committed(node, len(expected(0, 1))) == expected(0, 1)
