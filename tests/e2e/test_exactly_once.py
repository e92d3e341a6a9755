"""A topic is copied in transactions while workers and the node are killed: the copy is the original, once and in order.

Small in `make test`; `make chaos` runs it at its full size (EXACTLY_ONCE=full).
"""

import os
import random
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.e2e.clients import create_topic, read_all
from tests.e2e.copier import FENCED
from tests.support.node import ROOT, Node
from tests.support.waiting import until

INPUT: Final = "orders"
OUTPUT: Final = "copies"
PARTITIONS: Final = 4
WORKERS: Final = 3
SETTINGS: Final = {
    "group.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "1000",
    "group.consumer.heartbeat.interval.ms": "200",
    "metrics.port": "0",
}


@dataclass(frozen=True)
class Size:
    """How much is copied and what goes wrong meanwhile."""

    records: int
    per_transaction: int
    worker_kills: int
    node_kills: int
    seconds_max: float


FULL: Final = os.environ.get("EXACTLY_ONCE") == "full"
SIZE: Final = (
    Size(100_000, 750, worker_kills=20, node_kills=5, seconds_max=120.0)
    if FULL
    else Size(4_000, 100, worker_kills=2, node_kills=1, seconds_max=60.0)
)
PROTOCOLS: Final = ["classic", "consumer"] if FULL else ["classic"]


class Worker:
    """A copier's process; the next one with the same number has the same transactional id."""

    def __init__(self, folder: Path, bootstrap: str, number: int, protocol: str, *, aborts: float = 0.3) -> None:
        self.number = number
        arguments = {
            "bootstrap": bootstrap,
            "id": f"copier-{number}",
            "input": INPUT,
            "output": OUTPUT,
            "protocol": protocol,
            "records": str(SIZE.per_transaction),
            "aborts": str(aborts),
        }
        command = [
            sys.executable,
            "-m",
            "tests.e2e.copier",
            *(f"--{name}={value}" for name, value in arguments.items()),
        ]
        self._errors = folder / f"copier-{number}.err"
        with self._errors.open("ab") as errors:
            self.process = subprocess.Popen(command, stderr=errors, cwd=ROOT)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def check(self) -> None:
        """Fail where it has ended by itself."""
        assert self.process.poll() is None, self._errors.read_text()

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)


class Reader:
    """Reads the copy as it grows, committed records only."""

    def __init__(self, bootstrap: str) -> None:
        self.seen: list[list[int]] = [[] for _ in range(PARTITIONS)]
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "unused",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "reconnect.backoff.max.ms": 200,
                "log_level": 0,
            }
        )
        self._consumer.assign([TopicPartition(OUTPUT, index, 0) for index in range(PARTITIONS)])

    @property
    def count(self) -> int:
        """Read what is there, and count all that was read."""
        for message in self._consumer.consume(10_000, 0.05):
            if message.error() is None:
                self.seen[message.partition()].append(int(message.value()))
        return sum(map(len, self.seen))

    def close(self) -> None:
        self._consumer.close()


class Original:
    """The topic that is copied, and what was written to it, partition by partition."""

    def __init__(self, bootstrap: str) -> None:
        for topic in (INPUT, OUTPUT):
            create_topic(bootstrap, topic, partitions=PARTITIONS)
        self.written: list[list[int]] = [[] for _ in range(PARTITIONS)]
        self.count = 0
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5, "log_level": 0}
        )
        self.write(SIZE.records)

    def write(self, count: int) -> None:
        for number in range(self.count, self.count + count):
            self._producer.produce(INPUT, str(number).encode(), partition=number % PARTITIONS)
            self.written[number % PARTITIONS].append(number)
            if number % 1_000 == 0:
                self._producer.poll(0)
        assert self._producer.flush(60) == 0
        self.count += count


@pytest.mark.timeout(700)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_copy_is_the_original_whoever_is_killed(tmp_path: Path, protocol: str) -> None:
    chance = random.Random(os.environ.get("KILLS_SEED", "7"))
    kills = ["worker"] * SIZE.worker_kills + ["node"] * SIZE.node_kills
    chance.shuffle(kills)
    workers: list[Worker] = []
    with Node(tmp_path, settings=SETTINGS) as node:
        original = Original(node.bootstrap)
        reader = Reader(node.bootstrap)
        try:
            workers += [Worker(tmp_path, node.bootstrap, number, protocol) for number in range(WORKERS)]
            for turn, kill in enumerate(kills, start=1):
                until_copied(reader, workers, SIZE.records * turn // (len(kills) + 1))
                if kill == "node":
                    node.kill()
                    node.start()
                else:
                    number = chance.randrange(WORKERS)
                    workers[number].kill()
                    workers[number] = Worker(tmp_path, node.bootstrap, number, protocol)
            until_copied(reader, workers, SIZE.records)
        finally:
            for worker in workers:
                worker.kill()
            reader.close()
        assert reader.seen == original.written
        everything = [
            int(value)
            for index in range(PARTITIONS)
            for _, value in read_all(node.bootstrap, TopicPartition(OUTPUT, index), isolation="read_uncommitted")
        ]
        assert len(everything) > SIZE.records, "nothing was ever aborted"
        assert set(everything) == set(range(SIZE.records))


def test_a_worker_that_was_replaced_while_it_slept_is_fenced(tmp_path: Path) -> None:
    with Node(tmp_path, settings=SETTINGS) as node:
        original = Original(node.bootstrap)
        reader = Reader(node.bootstrap)
        zombie = Worker(tmp_path, node.bootstrap, 1, "classic", aborts=0)
        workers = [zombie]
        try:
            until_copied(reader, workers, SIZE.records // 4)
            zombie.send(signal.SIGSTOP)
            workers.append(Worker(tmp_path, node.bootstrap, 1, "classic", aborts=0))
            until_copied(reader, workers, SIZE.records // 2)
            zombie.send(signal.SIGCONT)
            until_ended(zombie, original)
            assert zombie.process.returncode == FENCED
            until_copied(reader, workers[1:], original.count)
        finally:
            for worker in workers:
                worker.kill()
            reader.close()
        assert reader.seen == original.written


def until_ended(zombie: Worker, original: Original) -> None:
    """Write something to copy until it has tried to."""

    def ended() -> bool:
        original.write(PARTITIONS)
        return zombie.process.poll() is not None

    until(ended, lambda: "the zombie lives on")


def until_copied(reader: Reader, workers: list[Worker], count: int) -> None:
    """Wait until so much can be read, and nobody has ended who was not killed."""

    def copied() -> bool:
        for worker in workers:
            worker.check()
        return reader.count >= count

    until(copied, lambda: f"{reader.count} of {count} were copied", seconds_max=SIZE.seconds_max)
