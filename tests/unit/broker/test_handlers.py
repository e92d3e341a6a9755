"""The table of served APIs names handlers that exist, and only APIs that the wire knows."""

import inspect

from riverlog.broker.handlers import HANDLERS, load_handler
from riverlog.wire.apis import API_BY_KEY


def test_every_row_names_a_handler_of_its_own_request() -> None:
    for key in HANDLERS:
        handler, _short_cut = load_handler(key)
        request = next(iter(inspect.signature(handler).parameters.values())).annotation
        assert API_BY_KEY[key].request.__name__ in str(request), key


def test_every_declared_api_is_served() -> None:
    assert set(HANDLERS) == set(API_BY_KEY)
