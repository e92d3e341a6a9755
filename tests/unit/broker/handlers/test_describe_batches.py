"""DescribeBatches."""

import pytest

from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from tests.support.asking import Line, serving
from tests.support.coordinator_lines import add, init, prepared
from tests.support.denial import deny
from tests.support.shared_lines import batches, end_batch, join


async def standing(line: Line, incarnation: str = "a") -> tuple[int, int, bytes]:
    told = await batches(line, incarnation)
    assert told.error_code == ErrorCode.NONE
    return told.committed_batch, told.open_batch, bytes(told.marker)


async def test_an_owner_learns_where_its_incarnation_stands() -> None:
    async with serving() as (line, _node):
        await prepared(line, "t")
        owner = await init(line)
        assert await standing(line) == (-1, -1, b"")
        member = await join(line, owner, 3)
        await add(line, member)
        assert await standing(line) == (-1, 3, b"")
        await end_batch(line, owner, 3, member, marker=b"three")
        assert await standing(line) == (3, -1, b"three")  # decided, whether all markers are written or not
        assert await standing(line, "another") == (-1, -1, b"")


async def test_an_id_that_nobody_uses_is_not_found() -> None:
    async with serving() as (line, _node):
        await prepared(line, "t")
        assert (await batches(line)).error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


async def test_not_everybody_may_see_them(monkeypatch: pytest.MonkeyPatch) -> None:
    deny(monkeypatch, Operation.DESCRIBE)
    async with serving() as (line, _node):
        assert (await batches(line)).error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
