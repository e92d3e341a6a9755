"""Waits for new records where a stream has read everything: a Fetch of next to nothing that the brokers hold.

So a record is planned for as soon as it is there, and an idle query costs a few requests a second.
"""

import asyncio
from itertools import groupby
from typing import Final

from riverlog.client.network.cluster import Cluster
from riverlog.client.offsets import IsolationLevel
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NodeId, Offset, TopicPartition
from riverlog.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic

LANE: Final = "waiting"


async def wait_for_records(
    cluster: Cluster, ends: dict[TopicPartition, Offset], isolation: IsolationLevel, seconds: float
) -> None:
    """Return as soon as any partition has a record where it ended; a broker that says no is as one that has nothing."""
    by_leader: dict[NodeId, list[TopicPartition]] = {}
    for partition in sorted(ends):
        leader = cluster.leader_of(partition)
        if leader is not None:
            by_leader.setdefault(leader, []).append(partition)
    if not by_leader:
        await asyncio.sleep(seconds)
        return
    asked = [
        asyncio.create_task(_wait(cluster, leader, {each: ends[each] for each in partitions}, isolation, seconds))
        for leader, partitions in by_leader.items()
    ]
    done, waiting = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    for task in done:
        task.result()


async def _wait(
    cluster: Cluster, leader: NodeId, ends: dict[TopicPartition, Offset], isolation: IsolationLevel, seconds: float
) -> None:
    topics = [
        FetchTopic(
            topic=name,
            topic_id=cluster.topics[name].topic_id,
            partitions=[
                FetchPartition(partition=each.partition, fetch_offset=ends[each], partition_max_bytes=1)
                for each in partitions
            ],
        )
        for name, partitions in groupby(sorted(ends), key=lambda each: each.topic)
    ]
    request = FetchRequest(
        max_wait_ms=int(seconds * 1000), min_bytes=1, max_bytes=1, isolation_level=isolation, topics=topics
    )
    connection = await cluster.connection(leader, LANE)
    response: FetchResponse = await connection.request(request, seconds=seconds + cluster.request_seconds)
    codes = {data.error_code for topic in response.responses for data in topic.partitions} | {response.error_code}
    if codes != {ErrorCode.NONE}:
        await asyncio.sleep(seconds)  # it would say no again at once
