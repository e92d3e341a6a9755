"""What lies in the partitions of topics: first and last offsets, records and bytes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NO_NODE, TopicPartition

if TYPE_CHECKING:
    from riverlog import Admin
    from riverlog.client.network.cluster import Topic


@dataclass(frozen=True, slots=True)
class PartitionSize:
    """A partition as its leader has it; `size` is None where nobody may ask for it."""

    start: int
    end: int
    size: int | None

    @property
    def records(self) -> int:
        """Count the offsets between: compaction and markers of transactions leave fewer records."""
        return self.end - self.start


async def partition_sizes(admin: "Admin", topics: "Iterable[Topic]") -> dict[TopicPartition, PartitionSize]:
    """Ask for the offsets and sizes of all partitions that have a leader."""
    leaders = {
        TopicPartition(topic.name, each.index): each.leader
        for topic in topics
        for each in topic.partitions
        if each.leader != NO_NODE
    }
    if not leaders:
        return {}
    starts = await admin.list_offsets(dict.fromkeys(leaders, "earliest"))
    ends = await admin.list_offsets(dict.fromkeys(leaders, "latest"))
    sizes = await _sizes(admin)
    return {
        at: PartitionSize(starts[at].offset, ends[at].offset, sizes.get((leader, at))) for at, leader in leaders.items()
    }


async def _sizes(admin: "Admin") -> Mapping[tuple[int, TopicPartition], int]:
    """Ask for the bytes of each replica; nothing where this user may not ask."""
    from riverlog import KafkaError

    try:
        directories = await admin.describe_log_dirs()
    except KafkaError as error:
        if error.code is not ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            raise
        return {}
    return {(each.node_id, at): size for each in directories for at, size in each.partitions.items()}
