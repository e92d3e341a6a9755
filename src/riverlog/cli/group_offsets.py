"""What commands know of a group: its members, how far it has come in each partition, and where it could go instead.

Asked of the cluster by `standing`; the rest is arithmetic.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from riverlog.cli.terminal.exits import usage_error
from riverlog.cli.terminal.expressions import LogEdge
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
    """One partition of a group: the next offset it will read, where the log ends, and who reads it."""

    partition: TopicPartition
    committed: int | None
    end: int | None
    member: "MemberDescription | None"

    @property
    def lag(self) -> int | None:
        """Count the records that wait; None where the group has not committed, or the log cannot be asked."""
        if self.committed is None or self.end is None:
            return None
        return max(0, self.end - self.committed)

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
    """A group and its progress in every partition that it has committed or was assigned."""

    group: "GroupDescription"
    progress: tuple[PartitionLag, ...]

    @property
    def lag(self) -> int:
        """Count all records that are known to wait."""
        return sum(each.lag or 0 for each in self.progress)

    def of_member(self, member: "MemberDescription") -> list[PartitionLag]:
        """Return the partitions of one member."""
        return [each for each in self.progress if each.member is member]


async def group_lag(admin: "Admin", name: str) -> GroupLag:
    """Ask for everything about a group."""
    group = await admin.describe_group(name)
    committed = await admin.group_offsets(name)
    readers = {partition: member for member in group.members for partition in member.partitions}
    partitions = sorted({*committed, *readers})
    ends = await offsets_at(admin, partitions, "latest")
    return GroupLag(
        group,
        tuple(
            PartitionLag(
                partition,
                committed[partition].offset if partition in committed else None,
                ends.get(partition),
                readers.get(partition),
            )
            for partition in partitions
        ),
    )


async def offsets_at(
    admin: "Admin", partitions: Iterable[TopicPartition], place: "OffsetQuestion"
) -> dict[TopicPartition, int]:
    """Find the offset of an end or a time in each partition; topics that are gone are left out."""
    known = {topic.name: len(topic.partitions) for topic in await admin.list_topics(internal=True)}
    there = [each for each in partitions if each.partition < known.get(each.topic, 0)]
    found = await admin.list_offsets(dict.fromkeys(there, place)) if there else {}
    return {partition: entry.offset for partition, entry in found.items()}


@dataclass(frozen=True, slots=True)
class AtTimestamp:
    """The first record at or after a time."""

    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class ShiftBy:
    """So many offsets from where the group stands."""

    count: int


ResetTarget = LogEdge | AtTimestamp | ShiftBy | int
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
