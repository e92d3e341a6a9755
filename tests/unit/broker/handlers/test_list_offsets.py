"""ListOffsets: both ends of a partition, and moments in between."""

from typing import Any

import pytest

from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.support.asking import Line, serving
from tests.support.batches import batch_of
from tests.unit.broker.handlers.test_produce import create, produced, request


async def asked(line: Line, timestamp: int, version: int = 7, **fields: int) -> Any:
    part = ListOffsetsPartition(partition_index=fields.pop("partition", 0), timestamp=timestamp, **fields)
    topics = [ListOffsetsTopic(name="orders", partitions=[part])]
    response = await line.ask(ApiKey.LIST_OFFSETS, version, ListOffsetsRequest(topics=topics))
    return response.topics[0].partitions[0]


async def test_ends_and_moments() -> None:
    async with serving() as (line, node):
        await create(line)
        assert (await asked(line, -1)).offset == 0
        assert (await asked(line, -3)).offset == -1
        for each in range(10):
            await produced(line, request(batch_of([b"x", b"y"], timestamp_ms=1_000 * each)))
        partition = node.parts.replicas.get("orders", 0)
        assert partition is not None
        partition.delete_records(4)  # type: ignore[arg-type]
        assert (await asked(line, -2)).offset == 4
        assert (await asked(line, -1)).offset == 20
        found = await asked(line, 5_000)
        assert (found.offset, found.timestamp) == (10, 5_000)
        assert (await asked(line, 0)).offset == 4
        assert (await asked(line, -3)).offset >= 18
        nowhere = await asked(line, 10**12)
        assert (nowhere.offset, nowhere.timestamp, nowhere.error_code) == (-1, -1, ErrorCode.NONE)


@pytest.mark.parametrize("version", range(1, 12))
async def test_every_version_finds_the_end(version: int) -> None:
    async with serving() as (line, _node):
        await create(line)
        await produced(line, request(batch_of([b"x"])))
        assert (await asked(line, -1, version)).offset == 1


@pytest.mark.parametrize(
    ("timestamp", "version", "fields", "code"),
    [
        (-1, 7, {"partition": 5}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (-3, 6, {}, ErrorCode.UNSUPPORTED_VERSION),
        (-99, 11, {}, ErrorCode.UNSUPPORTED_VERSION),
        (-1, 7, {"current_leader_epoch": 9}, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
async def test_refusals(timestamp: int, version: int, fields: dict[str, int], code: ErrorCode) -> None:
    async with serving() as (line, _node):
        await create(line)
        answer = await asked(line, timestamp, version, **fields)
        assert (answer.error_code, answer.offset) == (code, -1)


async def test_a_partition_that_is_named_twice_is_refused_and_the_others_are_answered() -> None:
    async with serving() as (line, _node):
        await create(line)
        await produced(line, request(batch_of([b"x"], timestamp_ms=5_000)))
        parts = [ListOffsetsPartition(partition_index=index, timestamp=1) for index in (0, 1, 1, 1)]
        asked = ListOffsetsRequest(topics=[ListOffsetsTopic(name="orders", partitions=parts)])
        response = await line.ask(ApiKey.LIST_OFFSETS, 7, asked)
        first, *others = response.topics[0].partitions
        assert (first.error_code, first.offset) == (ErrorCode.NONE, 0)
        assert [each.error_code for each in others] == [ErrorCode.INVALID_REQUEST] * 3
