"""EndTransaction."""

import asyncio

import pytest

from riverlog.broker.limits import BATCH_MARKER_BYTES_MAX
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.model.limits import MEMBERS_PER_BATCH_MAX
from riverlog.wire.messages.init_producer_id import InitProducerIdResponse
from tests.support import group_lines
from tests.support.asking import serving
from tests.support.coordinator_lines import add, described, init, prepared
from tests.support.denial import deny
from tests.support.shared_lines import batches, end_batch, join


@pytest.mark.parametrize(("committed", "state"), [(True, "CompleteCommit"), (False, "CompleteAbort")])
async def test_a_batch_is_ended_and_its_offsets_with_it(committed: bool, state: str) -> None:
    async with serving() as (line, _node):
        await prepared(line, "t")
        owner = await init(line)
        member = await join(line, owner)
        assert await add(line, member) == [ErrorCode.NONE]
        for _ in range(2):
            ended = await end_batch(line, owner, 0, member, committed=committed, offsets={"t": 42}, marker=b"m")
            assert (ended.error_code, ended.error_message) == (ErrorCode.NONE, None)
        await asyncio.sleep(1)
        assert (await described(line)).transaction_state == state
        told = await batches(line)
        assert (told.committed_batch, bytes(told.marker)) == ((0, b"m") if committed else (-1, b""))
        await group_lines.prepared(line, "t")
        assert await group_lines.committed(line, "t") == (42 if committed else -1)


async def test_offsets_that_cannot_be_committed_keep_back_the_batch() -> None:
    async with serving() as (line, _node):
        await prepared(line, "t")
        owner = await init(line)
        member = await join(line, owner)
        await add(line, member)
        ended = await end_batch(line, owner, 0, member, offsets={"nowhere": 1})
        assert ended.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert (await batches(line)).open_batch == 0
        assert (await end_batch(line, owner, 0, member, offsets={"t": 1})).error_code == ErrorCode.NONE


async def test_without_its_members_a_batch_is_not_begun_again_for_its_offsets() -> None:
    async with serving() as (line, _node):
        await prepared(line, "t")
        owner = await init(line)
        member = await join(line, owner)
        await add(line, member)
        assert (await end_batch(line, owner, 0, committed=False)).error_code == ErrorCode.NONE
        ended = await end_batch(line, owner, 0, member, offsets={"t": 1})
        assert ended.error_code == ErrorCode.TRANSACTION_ABORTABLE
        assert (await batches(line)).open_batch == -1


async def test_an_empty_batch_takes_offsets_along() -> None:
    async with serving() as (line, _node):
        await prepared(line, "t")
        await group_lines.prepared(line, "t")
        owner = await init(line)
        assert (await end_batch(line, owner, offsets={"t": 7})).error_code == ErrorCode.NONE
        await asyncio.sleep(1)
        assert await group_lines.committed(line, "t") == 7


async def test_what_is_no_end_is_refused() -> None:
    async with serving() as (line, _node):
        await prepared(line, "t")
        owner = await init(line)
        for wrong in (
            {"marker": b"x" * (BATCH_MARKER_BYTES_MAX + 1)},
            {"incarnation": ""},
            {"transactional_id": ""},
            {"batch": -1},
        ):
            assert (await end_batch(line, owner, **wrong)).error_code == ErrorCode.INVALID_REQUEST
        too_many = [owner] * (MEMBERS_PER_BATCH_MAX + 1)
        assert (await end_batch(line, owner, 0, *too_many)).error_code == ErrorCode.INVALID_REQUEST
        assert (await end_batch(line, owner, 0, owner)).error_code == ErrorCode.TRANSACTION_ABORTABLE
        await init(line)
        assert (await end_batch(line, owner)).error_code == ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize(
    ("denied", "code"),
    [
        (Operation.WRITE, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        (Operation.READ, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ],
)
async def test_not_everybody_may_end_a_batch(
    monkeypatch: pytest.MonkeyPatch, denied: Operation, code: ErrorCode
) -> None:
    deny(monkeypatch, denied)
    async with serving() as (line, _node):
        ended = await end_batch(line, InitProducerIdResponse(producer_id=9), offsets={"t": 1})
        assert ended.error_code == code
