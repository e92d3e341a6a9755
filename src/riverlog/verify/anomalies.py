"""The ways in which a history can contradict what a log promises, each a class with a sentence.

None of them is ever right, whatever fails meanwhile: a cluster may be slow or refuse, but not forget, repeat, reorder,
invent, or show what was taken back.
"""

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Final

from riverlog.model.ids import NO_OFFSET, Offset, TopicPartition
from riverlog.verify.history import Value

_CAPITAL: Final = re.compile(r"(?<=.)(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class Anomaly(ABC):
    """Something that must not be."""

    @classmethod
    def name(cls) -> str:
        """Return the words of the class's name: `aborted but read`."""
        return _CAPITAL.sub(" ", cls.__name__).lower()

    @property
    @abstractmethod
    def sentence(self) -> str:
        """Return what is wrong."""


@dataclass(frozen=True, slots=True)
class Lost(Anomaly):
    """A record that was acknowledged, or shown to somebody, is no longer there."""

    partition: TopicPartition
    offset: Offset
    value: Value
    was: str
    reader: str

    @property
    def sentence(self) -> str:
        return f"{self.value} was {self.was} at {_at(self.partition, self.offset)}; {self.reader} did not find it there"


@dataclass(frozen=True, slots=True)
class Unseen(Anomaly):
    """An acknowledged record was never read, and nobody came far enough to say that it is lost."""

    partition: TopicPartition
    offset: Offset
    value: Value

    @property
    def sentence(self) -> str:
        return f"{self.value} was acknowledged at {_at(self.partition, self.offset)}; nobody has come to it"


@dataclass(frozen=True, slots=True)
class Duplicated(Anomaly):
    """One record stands at several offsets, though its producer promised to write it once."""

    partition: TopicPartition
    value: Value
    offsets: tuple[Offset, ...]

    @property
    def sentence(self) -> str:
        return f"{self.value} stands in {self.partition} at offsets {', '.join(map(str, self.offsets))}"


@dataclass(frozen=True, slots=True)
class Reordered(Anomaly):
    """Two records of one producer stand in another order than they were sent in."""

    partition: TopicPartition
    producer: str
    earlier: Value
    later: Value

    @property
    def sentence(self) -> str:
        return f"{self.producer} sent {self.earlier} before {self.later}; in {self.partition} it stands behind it"


@dataclass(frozen=True, slots=True)
class Invented(Anomaly):
    """A record was read that nobody sent there: foreign, altered, or in the wrong partition."""

    partition: TopicPartition
    offset: Offset
    value: Value

    @property
    def sentence(self) -> str:
        return f"{_at(self.partition, self.offset)} holds {self.value}, which nobody sent there"


@dataclass(frozen=True, slots=True)
class InconsistentOffset(Anomaly):
    """One offset held different records, or was promised to one and held another."""

    partition: TopicPartition
    offset: Offset
    values: tuple[Value, ...]

    @property
    def sentence(self) -> str:
        return f"{_at(self.partition, self.offset)} stands for {' and for '.join(self.values)}"


@dataclass(frozen=True, slots=True)
class Skipped(Anomaly):
    """A reader, or a group as a whole, went past a record that is there."""

    partition: TopicPartition
    offset: Offset
    value: Value
    reader: str

    @property
    def sentence(self) -> str:
        return f"{self.reader} went past {self.value} at {_at(self.partition, self.offset)} without being given it"


@dataclass(frozen=True, slots=True)
class Rewound(Anomaly):
    """A reader was given an offset again, or a lower one, though it did not seek."""

    partition: TopicPartition
    reader: str
    first: Offset
    second: Offset

    @property
    def sentence(self) -> str:
        return f"{self.reader} was given offset {self.second} of {self.partition} behind offset {self.first}"


@dataclass(frozen=True, slots=True)
class CommitWentBack(Anomaly):
    """A group's committed offset was again what it had been before a later commit was acknowledged."""

    group: str
    partition: TopicPartition
    told: Offset
    acknowledged: Offset

    @property
    def sentence(self) -> str:
        told = "none" if self.told == NO_OFFSET else str(self.told)
        return f"group {self.group} had committed {self.acknowledged} in {self.partition}; later the answer was {told}"


@dataclass(frozen=True, slots=True)
class CommitInvented(Anomaly):
    """A group's committed offset is one that nobody committed."""

    group: str
    partition: TopicPartition
    told: Offset

    @property
    def sentence(self) -> str:
        return f"group {self.group} is said to have committed {self.told} in {self.partition}; nobody did"


@dataclass(frozen=True, slots=True)
class CommitBeyondEnd(Anomaly):
    """A group's committed offset lies behind the end of the partition."""

    group: str
    partition: TopicPartition
    told: Offset
    end: Offset

    @property
    def sentence(self) -> str:
        return f"group {self.group} has committed {self.told} in {self.partition}, which ends at {self.end}"


@dataclass(frozen=True, slots=True)
class AbortedButRead(Anomaly):
    """A record was read that was refused, or whose transaction was aborted."""

    partition: TopicPartition
    offset: Offset
    value: Value
    reader: str
    why: str

    @property
    def sentence(self) -> str:
        return f"{self.reader} was given {self.value} at {_at(self.partition, self.offset)}, which {self.why}"


@dataclass(frozen=True, slots=True)
class ReadTooEarly(Anomaly):
    """A reader of committed records was given one before anybody asked to commit it."""

    partition: TopicPartition
    offset: Offset
    value: Value
    reader: str
    transaction: str

    @property
    def sentence(self) -> str:
        where = _at(self.partition, self.offset)
        return f"{self.reader} was given {self.value} at {where} before {self.transaction} asked to commit it"


@dataclass(frozen=True, slots=True)
class TornTransaction(Anomaly):
    """Of a committed transaction some records are there and others are not."""

    transaction: str
    seen: tuple[Value, ...]
    missing: tuple[Value, ...]

    @property
    def sentence(self) -> str:
        return f"{self.transaction} is committed: {', '.join(self.seen)} can be read, {', '.join(self.missing)} cannot"


@dataclass(frozen=True, slots=True)
class Cycle(Anomaly):
    """Transactions that each came after the other: one read what the next wrote, and so on around."""

    transactions: tuple[str, ...]

    @property
    def sentence(self) -> str:
        return (
            f"each came before the next, and so before itself: {' → '.join((*self.transactions, self.transactions[0]))}"
        )


KINDS: Final[tuple[type[Anomaly], ...]] = (
    Lost,
    Unseen,
    Duplicated,
    Reordered,
    Invented,
    InconsistentOffset,
    Skipped,
    Rewound,
    CommitWentBack,
    CommitInvented,
    CommitBeyondEnd,
    AbortedButRead,
    ReadTooEarly,
    TornTransaction,
    Cycle,
)
"""All of them, in the order in which they are reported."""


def _at(partition: TopicPartition, offset: Offset) -> str:
    return str(partition) if offset == NO_OFFSET else f"{partition}@{offset}"
