"""One record by its offset: a single fetch, for programs that keep offsets instead of reading along."""

import asyncio
from itertools import count
from typing import Final

from riverlog.client.consumer.fetched_records import Chunk, ConsumerRecord
from riverlog.client.errors import KafkaError, failure
from riverlog.client.network.cluster import Cluster
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import Offset, TopicPartition
from riverlog.model.ports import FileRange
from riverlog.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic

_ATTEMPTS_MAX: Final = 10


async def read_at(
    cluster: Cluster, partition: TopicPartition, offset: int, *, bytes_max: int = 1024 * 1024
) -> ConsumerRecord | None:
    """Return the record at this offset; None where compaction has removed it. Transactions are not looked at.

    `bytes_max` should hold its batch; a larger one comes all the same, with nothing beside it.
    """
    for attempt in count(1):
        try:
            return await _read(cluster, partition, Offset(offset), bytes_max)
        except KafkaError as problem:
            if not problem.retriable or attempt == _ATTEMPTS_MAX:
                raise
        await asyncio.sleep(cluster.backoff(attempt))
        cluster.refresh_soon()
    raise AssertionError("counting does not end")


async def _read(cluster: Cluster, partition: TopicPartition, offset: Offset, bytes_max: int) -> ConsumerRecord | None:
    name, index = partition
    known = await cluster.topic(name)
    leader = cluster.leader_of(partition)
    if leader is None:
        raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{partition} has no leader now")
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=bytes_max,
        topics=[
            FetchTopic(
                topic=name,
                topic_id=known.topic_id,
                partitions=[FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=bytes_max)],
            )
        ],
    )
    response: FetchResponse = await cluster.ask(leader, request)
    if response.error_code != ErrorCode.NONE:
        raise failure(response.error_code, f"a fetch of {partition}")
    for topic in response.responses:
        for data in topic.partitions:
            if data.error_code != ErrorCode.NONE:
                raise failure(data.error_code, f"a fetch of {partition} at offset {offset}")
            assert not isinstance(data.records, FileRange)
            batch = Chunk(data.records or b"", (), read_committed=False).next_batch(partition, offset)
            return next((record for record in batch.records if record.offset == offset), None) if batch else None
    return None
