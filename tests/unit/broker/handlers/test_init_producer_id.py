"""InitProducerId."""

import pytest

from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.init_producer_id import InitProducerIdRequest
from tests.support.asking import serving
from tests.support.denial import deny
from tests.support.virtual_time import run
from tests.support.world import Universe


def test_every_version_gives_an_id_that_nobody_had():
    async def scenario() -> None:
        async with serving() as (line, _node):
            ids = []
            for version in range(6):
                response = await line.ask(ApiKey.INIT_PRODUCER_ID, version, InitProducerIdRequest())
                assert (response.error_code, response.producer_epoch) == (ErrorCode.NONE, 0)
                ids.append(response.producer_id)
            assert len(set(ids)) == 6

    run(scenario())


def test_ids_are_not_given_again_after_the_power_was_lost():
    async def scenario() -> None:
        universe = Universe()
        ids = []
        for _ in range(3):
            async with serving(universe) as (line, _node):
                ids.append((await line.ask(ApiKey.INIT_PRODUCER_ID, 4, InitProducerIdRequest())).producer_id)
                await universe.lose_power()
        assert len(set(ids)) == 3

    run(scenario())


def test_transactions_are_not_offered():
    async def scenario() -> None:
        async with serving() as (line, _node):
            request = InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=1000)
            response = await line.ask(ApiKey.INIT_PRODUCER_ID, 4, request)
            assert (response.error_code, response.producer_id) == (ErrorCode.UNSUPPORTED_VERSION, -1)

    run(scenario())


def test_who_may_not_write_with_an_id_gets_none(monkeypatch: pytest.MonkeyPatch):
    async def scenario() -> None:
        async with serving() as (line, _node):
            response = await line.ask(ApiKey.INIT_PRODUCER_ID, 4, InitProducerIdRequest())
            assert response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED

    deny(monkeypatch, Operation.IDEMPOTENT_WRITE)
    run(scenario())
