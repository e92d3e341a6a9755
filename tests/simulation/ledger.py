"""What the outside world knows about a node: what it promised, what it showed, and so what must hold.

Each record says in its value which topic, partition and producer it is for, which number it has, and is filled up
with bytes that follow from that. So whoever reads a record can tell whether it is one that was sent, in its place, and
whole. A ledger collects violations as sentences; it never looks into the node, except where `watch` compares offsets.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import Final
from zlib import crc32

from riverlog.partitions.partition import Partition

COMPACTED_TOPIC: Final = "compacted"
_COMPACTED_KEYS: Final = 5


@dataclass(frozen=True, slots=True)
class Label:
    """Which record it is: the topic's name and which of that name, the partition, the producer, the number there."""

    topic: str
    incarnation: int
    partition: int
    producer: int
    number: int

    def value(self) -> bytes:
        """Return the record's value: the label, and a filling that follows from it. Many have the same size."""
        label = f"{self.topic} {self.incarnation} {self.partition} {self.producer} {self.number}|".encode()
        random = Random(crc32(label))
        return label + random.randbytes(random.choice((30, 30, 140, 740)) - len(label))

    def key(self) -> bytes | None:
        """Return the record's key; every third has none, and in a compacted topic many have the same."""
        if self.topic == COMPACTED_TOPIC:
            return b"key %d" % (self.number % _COMPACTED_KEYS)
        return None if self.number % 3 == 0 else b"key %d" % self.number

    @classmethod
    def read(cls, value: bytes | None) -> "Label | None":
        """Find out which record a value belongs to; None where it is none of ours, or not whole."""
        words = (value or b"").partition(b"|")[0].split()
        if len(words) != 5:
            return None
        try:
            label = cls(words[0].decode(), *map(int, words[1:]))
        except ValueError:
            return None
        return label if label.value() == value else None


@dataclass(slots=True)
class PartitionLedger:
    """One partition of one incarnation of a topic."""

    sent: int = 0
    promised: dict[int, Label] = field(default_factory=dict)
    """What was acknowledged for good, by offset."""
    lent: dict[int, Label] = field(default_factory=dict)
    """What was acknowledged with acks=1: kept until the power is lost, and for good after a stop in good order."""
    shown: dict[int, Label] = field(default_factory=dict)
    """What consumers were given, where that is durable."""
    given_up: int = 0
    """Below this offset the records may be gone: somebody asked for it, or retention may have come by."""
    deleted: int = 0
    """Below this offset the records are gone for good: that was acknowledged."""
    kept: int = 0
    """Up to here the log was when the node last stopped in good order."""
    may_expire: bool = False
    rotten: bool = False
    """Bits of its files have changed, so that some records may be refused."""
    lost: set[int] = field(default_factory=set)
    """Offsets that the node refused because of that."""
    high_watermark: int = 0


class Ledger:
    """All partitions, and the violations found."""

    def __init__(self, say: Callable[[str], None], *, durable: bool) -> None:
        """Begin a ledger; where nothing is `durable`, a loss of power may take back all since the last good stop."""
        self.violations: list[str] = []
        self._durable = durable
        self.records_promised = 0
        self.records_shown = 0
        self._partitions: dict[tuple[str, int, int], PartitionLedger] = {}
        self._say = say

    def blame(self, violation: str) -> None:
        self.violations.append(violation)
        self._say(f"VIOLATION {violation}")

    def partition(self, topic: str, incarnation: int, index: int) -> PartitionLedger:
        return self._partitions.setdefault((topic, incarnation, index), PartitionLedger())

    # -- what clients learn

    def acknowledged(self, label: Label, offset: int, *, for_good: bool) -> None:
        """Note that the node promised to keep a record at this offset."""
        ledger = self.partition(label.topic, label.incarnation, label.partition)
        known = ledger.promised.get(offset) or ledger.shown.get(offset)
        if known is not None and known != label:
            self.blame(f"{label} was acknowledged at offset {offset}, where {known} is")
        (ledger.promised if for_good and self._durable else ledger.lent)[offset] = label
        self.records_promised += 1

    def show(self, topic: str, index: int, offset: int, key: bytes | None, value: bytes | None) -> Label | None:
        """Note that a consumer was given a record."""
        label = Label.read(value)
        if label is None:
            self.blame(f"{topic}-{index} holds bytes at offset {offset} that nobody sent: {value!r}")
            return None
        if (label.topic, label.partition) != (topic, index):
            self.blame(f"{label} was read from {topic}-{index}")
        if key != label.key():
            self.blame(f"{label} came with the key {key!r}")
        ledger = self.partition(topic, label.incarnation, index)
        if label.number >= ledger.sent:
            self.blame(f"{label} was read but not sent")
        known = ledger.shown.setdefault(offset, label) if self._durable else label
        if known != label:
            self.blame(f"offset {offset} of {topic}-{index} held {known} and now holds {label}")
        self.records_shown += 1
        return label

    # -- what happens to the machine

    def power_lost(self) -> None:
        """Forget what was only lent."""
        for ledger in self._partitions.values():
            ledger.lent.clear()
            if not self._durable:
                ledger.high_watermark = ledger.kept

    def stopped_cleanly(self) -> None:
        """Hold the node to everything it acknowledged: it had the time to write it down."""
        for ledger in self._partitions.values():
            ledger.promised.update(ledger.lent)
            ledger.lent.clear()
            ledger.kept = ledger.high_watermark

    def watch(self, partitions: Iterable[Partition], incarnations: dict[str, int]) -> None:
        """Compare the node's offsets with what they were: none of them goes back."""
        for partition in partitions:
            name, log, high_watermark = partition.name, partition.log, partition.high_watermark
            if name.topic not in incarnations:
                continue
            ledger = self.partition(name.topic, incarnations[name.topic], name.partition)
            if high_watermark < ledger.high_watermark:
                self.blame(f"{name}: the high watermark fell from {ledger.high_watermark} to {high_watermark}")
            if high_watermark > log.log_end_offset:
                self.blame(f"{name}: the high watermark {high_watermark} is behind the end {log.log_end_offset}")
            if log.log_start_offset < ledger.deleted:
                self.blame(f"{name}: the log starts at {log.log_start_offset}, but {ledger.deleted} was promised")
            if log.log_start_offset > ledger.given_up:
                if not ledger.may_expire:
                    self.blame(f"{name}: the log starts at {log.log_start_offset}; nobody asked for that")
                ledger.given_up = log.log_start_offset
            for damage in () if ledger.rotten else log.damage:
                self.blame(f"damage: {damage}")
            ledger.high_watermark = high_watermark

    # -- the end

    def judge(
        self, topic: str, incarnation: int, index: int, read: list[tuple[int, Label]], exactly_once: frozenset[int]
    ) -> None:
        """Compare what a partition holds in the end with all that was promised and shown."""
        ledger = self.partition(topic, incarnation, index)
        at = dict(read)
        name = f"{topic}-{index}"
        newest = {label.key(): offset for offset, label in at.items()} if topic == COMPACTED_TOPIC else {}
        for what, promised in (("acknowledged", ledger.promised), ("shown", ledger.shown)):
            for offset, label in promised.items():
                if offset not in at and newest.get(label.key(), -1) > offset:
                    continue  # a later record with its key took its place
                if offset >= ledger.given_up and offset not in ledger.lost and at.get(offset) != label:
                    self.blame(f"{name}: {label} was {what} at offset {offset}, where {at.get(offset)} is")
        for label in at.values():
            if label.incarnation != incarnation:
                self.blame(f"{name}: {label} belongs to an earlier topic of that name")
        held = [
            offset for offset in sorted({*at, *ledger.lost}) if offset >= ledger.given_up
        ]  # retention may have been at work meanwhile
        if topic != COMPACTED_TOPIC and any(later != earlier + 1 for earlier, later in pairwise(held)):
            self.blame(f"{name}: offsets are missing in {held}")
        everything = {**ledger.shown, **at}
        for producer in sorted(exactly_once):
            numbers = [label.number for _, label in sorted(everything.items()) if label.producer == producer]
            if any(later <= earlier for earlier, later in pairwise(numbers)):
                self.blame(f"{name}: producer {producer} finds its records twice or out of order: {numbers}")
