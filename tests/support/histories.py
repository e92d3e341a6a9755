"""Histories that are right: a small model of partitions, producers, transactions, a group and readers at the end.

The model knows what a log holds and shows it truthfully; only what clients are told of outcomes is sometimes left out.
"""

from dataclasses import dataclass, field
from random import Random
from typing import Final

from riverlog.model.ids import NO_OFFSET, Offset, TopicPartition
from riverlog.verify.history import History, Isolation, Reading, Transaction, Write

PARTITIONS: Final = (TopicPartition("orders", 0), TopicPartition("orders", 1))
GROUP: Final = "billing"
COPIERS: Final = "copiers"
"""The group whose offsets are committed in transactions."""


@dataclass
class Log:
    """What a partition holds: who wrote each entry (None for a transaction's mark), and whether it counts."""

    entries: list[tuple[Write | None, bool]] = field(default_factory=list)

    def append(self, write: Write | None, *, counts: bool = True) -> Offset:
        self.entries.append((write, counts))
        return Offset(len(self.entries) - 1)

    def read(self, start: int, end: int, isolation: Isolation) -> list[tuple[Offset, str]]:
        return [
            (Offset(offset), write.value)
            for offset, (write, counts) in enumerate(self.entries[:end])
            if offset >= start and write is not None and (counts or isolation is Isolation.READ_UNCOMMITTED)
        ]


class Model:
    """Clients at work on the logs, one step at a time."""

    def __init__(self, random: Random) -> None:
        self.history = History()
        self.logs = {partition: Log() for partition in PARTITIONS}
        self._random = random
        self._numbers = 0
        self._committed: dict[TopicPartition, int] = {}
        self._copied: dict[TopicPartition, int] = {}
        self._held: dict[TopicPartition, Reading] = {}

    def run(self, steps: int) -> History:
        for _ in range(steps):
            self._random.choice((self.write, self.write, self.transaction, self.poll, self.poll, self.take_over))()
        for partition in PARTITIONS:
            self._look_up_copiers(partition)
        for partition in PARTITIONS:
            self.look_up(partition)
        for isolation in Isolation:
            for partition, log in self.logs.items():
                self.read_all(partition, log, isolation)
        return self.history

    def write(self) -> None:
        write = self._write(f"producer {self._random.randrange(2)}", None)
        match self._random.choice(("acknowledged", "acknowledged", "nowhere", "kept", "refused", "gone")):
            case "acknowledged":
                self.history.acknowledged(write, self.logs[write.partition].append(write))
            case "nowhere":
                self.logs[write.partition].append(write)
                self.history.acknowledged(write)
            case "kept":
                self.logs[write.partition].append(write)
            case "refused":
                self.history.refused(write)

    def transaction(self) -> None:
        history, chance = self.history, self._random
        transaction = history.begin(f"pipeline {chance.randrange(2)}")
        commits = chance.random() < 0.7
        told = chance.random() < 0.7
        if chance.random() < 0.5:
            partition = chance.choice(PARTITIONS)
            log = self.logs[partition]
            reading = history.read_from(transaction.client, partition, Offset(0), isolation=Isolation.READ_COMMITTED)
            history.saw(reading, log.read(0, len(log.entries), reading.isolation), transaction)
        writes = [self._write(transaction.client, transaction) for _ in range(chance.randrange(1, 4))]
        are_told = chance.random() < 0.7
        for write in writes:
            offset = self.logs[write.partition].append(write, counts=commits)
            if are_told:
                history.acknowledged(write, offset)
        copied = {chance.choice(PARTITIONS)} if chance.random() < 0.5 else set()
        for partition in copied:
            history.commit(COPIERS, partition, Offset(len(self.logs[partition].entries)), transaction=transaction)
        if commits or not told:
            history.committing(transaction)
        if commits:
            self._copied |= {partition: len(self.logs[partition].entries) for partition in copied}
        if told:
            (history.committed if commits else history.aborted)(transaction)
        if chance.random() < 0.3:
            self._look_up_copiers(chance.choice(PARTITIONS))
        for partition in {write.partition for write in writes}:
            self.logs[partition].append(None)

    def poll(self) -> None:
        """Make the group's member of a partition read on, and perhaps commit where it stands."""
        if not self._held:
            self.take_over()
        partition, reading = self._random.choice(list(self._held.items()))
        log = self.logs[partition]
        end = min(len(log.entries), reading.position + self._random.randrange(1, 5))
        self.history.saw(reading, log.read(reading.position, end, reading.isolation))
        self.history.passed(reading, Offset(end))
        if self._random.random() < 0.6 and self._committed.get(partition) != end:
            commit = self.history.commit(GROUP, partition, Offset(end))
            match self._random.choice(("acknowledged", "acknowledged", "kept", "gone", "refused")):
                case "acknowledged":
                    self._committed[partition] = end
                    self.history.commit_acknowledged(commit)
                case "kept":
                    self._committed[partition] = end
                case "refused":
                    self.history.commit_refused(commit)

    def take_over(self) -> None:
        """Make another member go on where the group has committed."""
        partition = self._random.choice(PARTITIONS)
        start = self.look_up(partition)
        member = f"member {self._random.randrange(3)}"
        self._held[partition] = self.history.read_from(
            member, partition, Offset(max(start, 0)), isolation=Isolation.READ_COMMITTED, group=GROUP
        )

    def look_up(self, partition: TopicPartition) -> int:
        began = self.history.moment()
        found = self._committed.get(partition, NO_OFFSET)
        self.history.looked_up(GROUP, partition, Offset(found), began=began)
        return found

    def _look_up_copiers(self, partition: TopicPartition) -> None:
        began = self.history.moment()
        self.history.looked_up(COPIERS, partition, Offset(self._copied.get(partition, NO_OFFSET)), began=began)

    def read_all(self, partition: TopicPartition, log: Log, isolation: Isolation) -> None:
        reading = self.history.read_from(f"reader {isolation.value}", partition, Offset(0), isolation=isolation)
        end = len(log.entries)
        self.history.saw(reading, log.read(0, end, isolation))
        self.history.passed(reading, Offset(end), at_end=True)

    def _write(self, producer: str, transaction: Transaction | None) -> Write:
        self._numbers += 1
        return self.history.write(
            producer, self._random.choice(PARTITIONS), f"v{self._numbers}", transaction=transaction
        )


def last_readings(history: History) -> list[Reading]:
    """Return the readings of those who read everything at the end."""
    return [reading for reading in history.readings if reading.at_end]
