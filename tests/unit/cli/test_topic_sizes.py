"""What lies in partitions."""

import asyncio
from typing import Any
from uuid import UUID

from riverlog.cli.topic_sizes import PartitionSize, partition_sizes
from riverlog.client.network.cluster import Partition, Topic
from riverlog.model.ids import NO_NODE, TopicId


def test_records_are_the_offsets_between() -> None:
    assert PartitionSize(3, 10, None).records == 7


def test_a_partition_that_nobody_leads_is_not_asked_for() -> None:
    nobody: Any = None
    topic = Topic("orders", TopicId(UUID(int=7)), (Partition(0, NO_NODE, 0, (), ()),))
    assert asyncio.run(partition_sizes(nobody, [topic])) == {}
