"""The table of served APIs names handlers that exist, of APIs that the wire knows; a mistake in one is survived."""

import asyncio
import inspect

import pytest

from riverlog.broker.handlers import HANDLERS, load_handler
from riverlog.broker.requests.context import Later
from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import API_BY_KEY, ApiKey
from riverlog.wire.messages.api_versions import ApiVersionsRequest
from riverlog.wire.types import fields_of
from tests.support.asking import connected, serving
from tests.support.world import Universe


def test_every_row_names_a_handler_of_its_own_request() -> None:
    for key in HANDLERS:
        handler, _short_cut = load_handler(key)
        request = next(iter(inspect.signature(handler).parameters.values())).annotation
        assert API_BY_KEY[key].request.__name__ in str(request), key


def test_every_api_that_clients_may_ask_is_served() -> None:
    assert set(HANDLERS) == {key for key, api in API_BY_KEY.items() if not api.controllers_only}


@pytest.mark.parametrize("way", ["at once", "holding the line", "later"])
@pytest.mark.parametrize("key", HANDLERS)
async def test_a_mistake_in_any_handler_costs_one_answer_or_one_connection(
    key: ApiKey, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = API_BY_KEY[key]

    def fails(request: object, context: object) -> object:
        if way == "later":
            return Later(fails_later(request, context))
        raise ZeroDivisionError

    async def fails_later(request: object, context: object) -> object:
        raise ZeroDivisionError

    handler = fails_later if way == "holding the line" else fails
    monkeypatch.setattr(
        "tests.support.world.load_handler", lambda asked: (handler, None) if asked is key else load_handler(asked)
    )
    universe = Universe()
    async with serving(universe) as (line, node):
        answered = line.send(key, api.versions.max, api.request())
        ended = asyncio.ensure_future(line.ended.wait())
        await asyncio.wait([answered, ended], return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()
        assert node.stats.contained == 1
        has_place = "error_code" in {
            field.name for field in fields_of(api.response) if field.wire.is_in(api.versions.max)
        }
        assert answered.done() == has_place
        if has_place:
            assert answered.result().error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        if key is not ApiKey.API_VERSIONS:
            again = await connected(universe)
            await again.ask(ApiKey.API_VERSIONS, 3, ApiVersionsRequest())
        assert node.failure is None
