"""AddOffsetsToTxn."""

import pytest

from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.model.internal_topics import OFFSETS_TOPIC
from riverlog.wire.messages.init_producer_id import InitProducerIdResponse
from tests.support import group_lines
from tests.support.asking import serving
from tests.support.coordinator_lines import add_offsets, described, init, prepared
from tests.support.denial import deny
from tests.support.group_lines import GROUP


@pytest.mark.parametrize("version", range(5))
async def test_every_version_adds_the_partition_of_the_group(version: int) -> None:
    async with serving() as (line, node):
        await prepared(line)
        await group_lines.prepared(line)
        assert await add_offsets(line, await init(line), GROUP, version) is ErrorCode.NONE
        (topic,) = (await described(line)).topics
        assert (topic.topic, topic.partitions) == (OFFSETS_TOPIC, [node.parts.groups.partition_of(GROUP).partition])


@pytest.mark.parametrize(("version", "code"), [(1, ErrorCode.INVALID_PRODUCER_EPOCH), (2, ErrorCode.PRODUCER_FENCED)])
async def test_a_zombie_is_told_so_in_words_that_it_knows(version: int, code: ErrorCode) -> None:
    async with serving() as (line, _node):
        await prepared(line)
        await group_lines.prepared(line)
        old = await init(line)
        await init(line)
        assert await add_offsets(line, old, GROUP, version) is code


async def test_without_coordinators_there_is_nothing_to_add_to() -> None:
    async with serving() as (line, _node):
        nobody = InitProducerIdResponse(producer_id=9)
        assert await add_offsets(line, nobody, GROUP) is ErrorCode.NOT_COORDINATOR
        await prepared(line)
        assert await add_offsets(line, nobody, GROUP) is ErrorCode.INVALID_PRODUCER_ID_MAPPING


async def test_a_transaction_may_be_the_first_to_need_the_topic_of_groups() -> None:
    async with serving() as (line, node):
        await prepared(line)
        assert node.parts.metadata.image.topic(OFFSETS_TOPIC) is None
        assert await add_offsets(line, await init(line), GROUP) is ErrorCode.NONE


@pytest.mark.parametrize(
    ("denied", "code"),
    [
        (Operation.WRITE, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        (Operation.READ, ErrorCode.GROUP_AUTHORIZATION_FAILED),
    ],
)
async def test_not_everybody_may_add_offsets(
    monkeypatch: pytest.MonkeyPatch, denied: Operation, code: ErrorCode
) -> None:
    deny(monkeypatch, denied)
    async with serving() as (line, _node):
        await prepared(line)
        await group_lines.prepared(line)
        assert await add_offsets(line, InitProducerIdResponse(producer_id=9), GROUP) is code
