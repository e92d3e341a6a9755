"""Exactly once from end to end: a copier that is killed and replaced, on a node that is killed and started again."""

import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.e2e.clients import create_topic
from tests.e2e.confluent_copier import INPUT, OUTPUT
from tests.support.node import ROOT, Node
from tests.support.waiting import until

RECORDS: Final = int(os.environ.get("COPIER_RECORDS", "12000"))
COPIER_KILLS: Final = int(os.environ.get("COPIER_KILLS", "6"))
NODE_KILLS: Final = int(os.environ.get("COPIER_NODE_KILLS", "2"))
SEED: Final = int(os.environ.get("KILLS_SEED", "1"))
SIZE: Final = 750 if RECORDS >= 100_000 else 100
PARTITIONS: Final = 2
RESTARTS_MAX: Final = 100


class Copier:
    """One copier's process, and what it says."""

    def __init__(self, folder: Path, node: Node, number: int) -> None:
        self._out = folder / f"copier-{number}.out"
        arguments = ["--bootstrap", node.bootstrap, "--partitions", str(PARTITIONS), "--size", str(SIZE)]
        with self._out.open("wb") as out, self._out.with_suffix(".err").open("wb") as errors:
            command = [
                sys.executable,
                "-m",
                "tests.e2e.confluent_copier",
                *arguments,
                "--seed",
                str(SEED * 1000 + number),
            ]
            self.process = subprocess.Popen(command, stdout=out, stderr=errors, cwd=ROOT)

    def wait(self, transactions: int) -> None:
        """Wait until it has come through so many transactions, or has ended."""
        until(
            lambda: self.has_ended or len(self._out.read_text().splitlines()) >= transactions,
            self.errors,
            seconds_max=90,
        )

    @property
    def has_ended(self) -> bool:
        return self.process.poll() is not None

    @property
    def is_through(self) -> bool:
        """Return whether it has reached the end of the input."""
        return self.process.poll() == 0

    def errors(self) -> str:
        return self._out.with_suffix(".err").read_text()


@pytest.mark.timeout(900)  # of the long form
def test_a_copy_is_exact_whatever_is_killed(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    with Node(tmp_path, settings={"metrics.port": "-1"}) as node:
        for topic in (INPUT, OUTPUT):
            create_topic(node.bootstrap, topic, partitions=PARTITIONS)
        written: dict[int, list[bytes]] = {index: [] for index in range(PARTITIONS)}
        write(node, RECORDS, written)
        kills = ["copier"] * COPIER_KILLS + ["node"] * NODE_KILLS
        chance.shuffle(kills)
        copiers = [Copier(tmp_path, node, 0)]
        try:
            while kills or not copiers[-1].is_through:
                copier = copiers[-1]
                copier.wait(chance.randint(1, 3) if kills else sys.maxsize)
                if not copier.has_ended:
                    kill(kills.pop(), copier, node, chance)
                elif copier.is_through and kills:  # it was faster than a busy machine could kill it
                    write(node, 10 * SIZE, written)
                if kills or not copier.is_through:
                    assert len(copiers) < RESTARTS_MAX, copier.errors()
                    copiers.append(Copier(tmp_path, node, len(copiers)))
        finally:
            for copier in copiers:
                copier.process.kill()
                copier.process.wait()
        assert read(node, "read_committed") == written
        assert sum(map(len, read(node, "read_uncommitted").values())) > sum(map(len, written.values()))


def kill(which: str, copier: Copier, node: Node, chance: random.Random) -> None:
    """Kill the node, or the copier; or leave that one to be fenced by the next."""
    if which == "node":
        node.kill()
        node.start()
    elif chance.random() < 0.7:
        copier.process.kill()
        copier.process.wait()


def write(node: Node, records: int, written: dict[int, list[bytes]]) -> None:
    """Add to the input, and to what each partition of it holds."""
    producer = Producer({"bootstrap.servers": node.bootstrap, "log_level": 0})
    already = sum(map(len, written.values()))
    for number in range(already, already + records):
        value, partition = str(number).encode(), number % PARTITIONS
        written[partition].append(value)
        producer.produce(INPUT, value, partition=partition)
        producer.poll(0)
    assert producer.flush(30) == 0


def read(node: Node, isolation_level: str) -> dict[int, list[bytes]]:
    """Read the whole output, by partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": node.bootstrap,
            "group.id": "judge",
            "isolation.level": isolation_level,
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(OUTPUT, index, 0) for index in range(PARTITIONS)])
    found: dict[int, list[bytes]] = {index: [] for index in range(PARTITIONS)}
    ended = 0
    while ended < PARTITIONS:
        message = consumer.poll(30)
        assert message is not None, f"{ended} partitions of {PARTITIONS} were read to the end"
        if message.error() is not None:
            ended += 1
        else:
            found[message.partition()].append(message.value())
    consumer.close()
    return found
