"""JoinTransaction."""

import pytest

from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.model.limits import INCARNATION_LENGTH_MAX
from riverlog.model.transactions import ProducerIdentity
from riverlog.wire.messages.init_producer_id import InitProducerIdResponse
from tests.support.asking import serving
from tests.support.coordinator_lines import ID, add, described, init, prepared
from tests.support.denial import deny
from tests.support.shared_lines import end_batch, join
from tests.support.transaction_lines import sent


def producer(told: InitProducerIdResponse) -> ProducerIdentity:
    return ProducerIdentity(told.producer_id, told.producer_epoch)  # type: ignore[arg-type]  # numbers of the wire


async def test_members_write_as_transactional_producers_without_further_words() -> None:
    async with serving() as (line, _node):
        await prepared(line, "t")
        owner = await init(line)
        first, second = await join(line, owner), await join(line, owner, task=1)
        assert first.producer_id != second.producer_id
        for member in (first, second):
            answer = await sent(line, producer(member), 0, b"x", topic="t", transactional_id=ID)
            assert answer.error_code == ErrorCode.NONE
        state = await described(line)
        assert (state.transaction_state, state.topics[0].partitions) == ("Ongoing", [0])


async def test_members_of_older_clients_announce_their_partitions() -> None:
    async with serving() as (line, _node):
        await prepared(line, "t")
        member = await join(line, await init(line))
        assert await add(line, member) == [ErrorCode.NONE]
        answer = await sent(line, producer(member), 0, b"x", topic="t", version=11, transactional_id=ID)
        assert answer.error_code == ErrorCode.NONE


async def test_who_comes_back_from_the_dead_is_refused_at_its_first_write() -> None:
    async with serving() as (line, _node):
        await prepared(line, "t")
        owner = await init(line)
        dead, alive = await join(line, owner), await join(line, owner, attempt=1)
        assert (await sent(line, producer(alive), 0, b"x", topic="t", transactional_id=ID)).error_code == 0
        assert (await end_batch(line, owner, 0, alive)).error_code == ErrorCode.NONE
        answer = await sent(line, producer(dead), 0, b"late", topic="t", transactional_id=ID)
        assert answer.error_code == ErrorCode.INVALID_PRODUCER_EPOCH


async def test_what_is_no_member_and_no_batch_is_refused() -> None:
    async with serving() as (line, _node):
        await prepared(line, "t")
        owner = await init(line)
        for wrong in (
            {"task": -1},
            {"attempt": -1},
            {"batch": -1},
            {"incarnation": ""},
            {"incarnation": "x" * (INCARNATION_LENGTH_MAX + 1)},
            {"transactional_id": ""},
        ):
            assert (await join(line, owner, **wrong)).error_code == ErrorCode.INVALID_REQUEST
        await init(line)
        assert (await join(line, owner)).error_code == ErrorCode.PRODUCER_FENCED


async def test_not_everybody_may_join(monkeypatch: pytest.MonkeyPatch) -> None:
    deny(monkeypatch, Operation.WRITE)
    async with serving() as (line, _node):
        told = await join(line, InitProducerIdResponse(producer_id=9))
        assert told.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
