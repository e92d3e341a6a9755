"""What commands know of a group: its members, how far it has come in each partition, and where it could go instead.

Asked of the cluster by `group_lags`; the rest is arithmetic.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from riverlog.cli.terminal.exits import usage_error
from riverlog.cli.terminal.expressions import LogEdge, TimestampMs
from riverlog.cli.terminal.render import Row
from riverlog.model.ids import TopicPartition
from riverlog.model.moments import span_ms

if TYPE_CHECKING:
    from riverlog import Admin
    from riverlog.client.admin.groups import GroupDescription, MemberDescription
    from riverlog.client.offsets import OffsetQuestion

_ISO: Final = re.compile(r"P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?")


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """One partition of a group: the next offset it will read, where the log ends and begins, and who reads it."""

    partition: TopicPartition
    committed: int | None
    end: int | None
    member: "MemberDescription | None"
    start: int = 0

    @property
    def lag(self) -> int | None:
        """Count the records that wait, all of them where nothing is committed; None where there is no log."""
        if self.end is None:
            return None
        return max(0, self.end - (self.start if self.committed is None else self.committed))

    def row(self) -> Row:
        """Return the facts as a row."""
        return {
            "topic": self.partition.topic,
            "partition": self.partition.partition,
            "committed": self.committed,
            "end": self.end,
            "lag": self.lag,
            "member": self.member and self.member.member_id,
            "instance": self.member and self.member.instance_id,
            "client": self.member and self.member.client_id,
            "host": self.member and self.member.host,
        }


@dataclass(frozen=True, slots=True)
class GroupLag:
    """A group and its progress in every partition of its topics."""

    group: "GroupDescription"
    progress: tuple[PartitionLag, ...]

    @property
    def lag(self) -> int:
        """Count all records that are known to wait."""
        return sum(each.lag or 0 for each in self.progress)

    def of_member(self, member: "MemberDescription") -> list[PartitionLag]:
        """Return the partitions of one member."""
        return [each for each in self.progress if each.member is member]


async def group_lags(admin: "Admin", names: Sequence[str]) -> list[GroupLag]:
    """Ask for everything about these groups, or about all; one that is gone meanwhile is left out of all."""
    from riverlog import KafkaError
    from riverlog.model.errors import ErrorCode

    async def asked(name: str) -> "tuple[GroupDescription, dict[TopicPartition, int]] | None":
        try:
            group = await admin.describe_group(name)
        except KafkaError as error:
            if names or error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
                raise
            return None
        return group, {at: each.offset for at, each in (await admin.group_offsets(name)).items()}

    every = names or [group.name for group in await admin.list_groups()]
    found = [answer for name in every if (answer := await asked(name)) is not None]
    counts = {topic.name: len(topic.partitions) for topic in await admin.list_topics(internal=True)}
    partitions = {at for group, committed in found for at in _partitions_of(group, committed, counts)}
    starts, ends = await offsets_at(admin, partitions, "earliest"), await offsets_at(admin, partitions, "latest")
    lags = []
    for group, committed in found:
        readers = {partition: member for member in group.members for partition in member.partitions}
        progress = [
            PartitionLag(at, committed.get(at), ends.get(at), readers.get(at), starts.get(at, 0))
            for at in _partitions_of(group, committed, counts)
        ]
        lags.append(GroupLag(group, tuple(progress)))
    return lags


def _partitions_of(
    group: "GroupDescription", committed: Mapping[TopicPartition, int], counts: Mapping[str, int]
) -> list[TopicPartition]:
    """List the partitions of all topics that a group reads, or has committed offsets of."""
    known = {*committed, *(partition for member in group.members for partition in member.partitions)}
    topics = {at.topic for at in known}
    return sorted(known | {TopicPartition(topic, each) for topic in topics for each in range(counts.get(topic, 0))})


async def offsets_at(
    admin: "Admin", partitions: Iterable[TopicPartition], place: "OffsetQuestion"
) -> dict[TopicPartition, int]:
    """Find the offset of an end or a time in each partition; topics that are gone are left out."""
    known = {topic.name: len(topic.partitions) for topic in await admin.list_topics(internal=True)}
    there = [each for each in partitions if each.partition < known.get(each.topic, 0)]
    found = await admin.list_offsets(dict.fromkeys(there, place)) if there else {}
    return {partition: entry.offset for partition, entry in found.items()}


@dataclass(frozen=True, slots=True)
class ShiftBy:
    """So many offsets from where the group stands."""

    count: int


ResetTarget = LogEdge | TimestampMs | ShiftBy | int
"""Where a group can be sent: an end of the log, a time, away from where it is, or an offset."""


@dataclass(frozen=True, slots=True)
class Move:
    """One step of a reset: where a group stands in a partition and where it will go on."""

    partition: TopicPartition
    before: int | None
    after: int

    @property
    def replayed(self) -> int:
        """Count the records that will be read once more."""
        return max(0, (self.before or 0) - self.after) if self.before is not None else 0

    @property
    def skipped(self) -> int:
        """Count the records that will not be read."""
        return max(0, self.after - self.before) if self.before is not None else 0

    def row(self) -> Row:
        """Return the facts as a row."""
        return {
            "topic": self.partition.topic,
            "partition": self.partition.partition,
            "before": self.before,
            "after": self.after,
            "replayed": self.replayed,
            "skipped": self.skipped,
        }


def plan_moves(
    wanted: Mapping[TopicPartition, int],
    committed: Mapping[TopicPartition, int],
    *,
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
) -> list[Move]:
    """Plan the move of each partition; an offset that the log does not have becomes the nearest that it has."""
    return [
        Move(partition, committed.get(partition), min(max(offset, starts[partition]), ends[partition]))
        for partition, offset in sorted(wanted.items())
    ]


def duration_ms(text: str) -> int:
    """Read a length of time: `90s`, `15m`, `1.5h`, `2d`, or ISO 8601 as Kafka's tools take it, `PT1H30M`."""
    if (short := span_ms(text)) is not None:
        return short
    iso = _ISO.fullmatch(text.strip())
    if iso is None or not any(iso.groups()):
        raise usage_error(f"'{text}' is not a length of time; give one as 15m (units ms, s, m, h, d, w) or PT1H30M")
    weeks, days, hours, minutes, seconds = (float(part or 0) for part in iso.groups())
    length = timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)
    return length // timedelta(milliseconds=1)
