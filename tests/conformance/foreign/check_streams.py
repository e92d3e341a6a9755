"""Kafka Streams on the broker: exactly once, with state and topics of its own, killed again and again."""

import random
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.conformance.adapters import Deadline
from tests.conformance.foreign.build import streams

ACCOUNTS = [f"account-{number}" for number in range(12)]
PARTITIONS = 3
KILLS = 3
RECORDS_PER_LIFE = 2_000
PATIENCE_SECONDS = 90  # a killed member is missed after six seconds, and its transactions after ten

Totals = Mapping[str, list[int]]
"""The running totals of each account."""


class Application:
    """A Kafka Streams program that adds up what an account gets."""

    def __init__(self, bootstrap: str, name: str, source: str, target: str, home: Path) -> None:
        self._command = [*streams(), bootstrap, name, source, target, str(home / "state")]
        self._printed = home / "printed"

    @contextmanager
    def running(self) -> Iterator[subprocess.Popen[bytes]]:
        with self._printed.open("ab") as printed:
            process = subprocess.Popen(self._command, stdout=printed, stderr=subprocess.STDOUT)
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    @property
    def printed(self) -> str:
        return self._printed.read_text(errors="replace")


@pytest.fixture
def application(
    bootstrap: str, new_topic: Callable[..., str], fresh_name: Callable[[], str], tmp_path: Path
) -> tuple[Application, str, str]:
    """Return a program with its source and its target."""
    source, target = new_topic(partitions=PARTITIONS), new_topic(partitions=PARTITIONS)
    return Application(bootstrap, fresh_name(), source, target, tmp_path), source, target


def send(bootstrap: str, topic: str, amounts: Mapping[str, list[int]], rng: random.Random) -> None:
    """Send amounts of random accounts, those of one account in order."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    for _ in range(RECORDS_PER_LIFE):
        account, amount = rng.choice(ACCOUNTS), rng.randrange(1, 100)
        amounts[account].append(amount)
        producer.produce(topic, f"{account},{amount}", key=account)
        producer.poll(0)
    assert producer.flush(PATIENCE_SECONDS) == 0


class Results:
    """What readers of committed records have seen of the totals."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.totals: dict[str, list[int]] = defaultdict(list)
        self._consumer = Consumer(
            {"bootstrap.servers": bootstrap, "group.id": topic, "isolation.level": "read_committed"}
        )
        self._consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])

    def read(self, count: int) -> None:
        """Read until there are so many results, at least."""
        deadline = Deadline(PATIENCE_SECONDS)
        while sum(map(len, self.totals.values())) < count and deadline.left():
            for message in self._consumer.consume(1_000, 0.1):
                assert message.error() is None, message.error()
                self.totals[(message.key() or b"").decode()].append(int(message.value() or b""))

    def close(self) -> None:
        self._consumer.close()


def expected(amounts: Mapping[str, list[int]]) -> Totals:
    return {account: list(accumulate(each)) for account, each in amounts.items()}


def test_every_record_counts_once_though_the_program_is_killed(
    bootstrap: str, application: tuple[Application, str, str]
) -> None:
    program, source, target = application
    amounts: dict[str, list[int]] = defaultdict(list)
    rng = random.Random(7)
    results = Results(bootstrap, target)
    for life in range(KILLS):
        with program.running():
            send(bootstrap, source, amounts, rng)
            results.read(life * RECORDS_PER_LIFE + rng.randrange(RECORDS_PER_LIFE))
    with program.running() as process:
        send(bootstrap, source, amounts, rng)
        results.read((KILLS + 1) * RECORDS_PER_LIFE)
        process.terminate()
        assert process.wait(PATIENCE_SECONDS) == 128 + 15, "ended by our signal, after its own farewell"
    assert results.totals == expected(amounts)
    assert program.printed.split()[-1] == "NOT_RUNNING", "it left its group in order"
    results.close()
