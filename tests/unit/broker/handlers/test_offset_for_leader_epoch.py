"""OffsetForLeaderEpoch: where an epoch ended, for readers that want to know whether the log was cut."""

from typing import Any

from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.support.asking import Line, serving
from tests.support.batches import batch_of
from tests.support.world import Universe
from tests.unit.broker.handlers.test_produce import create, produced, request


async def asked(line: Line, epoch: int, partition: int = 0) -> Any:
    part = OffsetForLeaderPartition(partition=partition, current_leader_epoch=-1, leader_epoch=epoch)
    topics = [OffsetForLeaderTopic(topic="orders", partitions=[part])]
    response = await line.ask(ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, OffsetForLeaderEpochRequest(topics=topics))
    return response.topics[0].partitions[0]


async def test_an_epoch_ends_where_the_next_began() -> None:
    universe = Universe()
    async with serving(universe, durability="fsync") as (line, _node):
        await create(line)
        await produced(line, request(batch_of([b"a", b"b"])))
        assert (await asked(line, 0)).end_offset == 2
        assert (await asked(line, 7)).end_offset == -1
        assert (await asked(line, 0, partition=3)).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        await universe.lose_power()
    async with serving(universe) as (line, _node):
        assert (await asked(line, 1)).end_offset == 2  # a node that may have forgotten something begins anew
        await produced(line, request(batch_of([b"c"])))
        ended, going_on = await asked(line, 0), await asked(line, 1)
        assert (ended.leader_epoch, ended.end_offset) == (0, 2)
        assert (going_on.leader_epoch, going_on.end_offset) == (1, 3)
