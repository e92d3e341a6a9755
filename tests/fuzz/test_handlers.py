"""Boundary requests at a node: a short run of what `make fuzz` does, and that it notices what it looks for."""

from typing import Any

import pytest

from riverlog.broker.handlers import load_handler
from riverlog.wire.apis import ApiKey
from tests.fuzz.handlers import fuzz_handlers


def test_no_boundary_request_harms_a_node() -> None:
    report = fuzz_handlers(0, seed=7, requests=1)
    assert report.wrong == []
    assert report.answered > 300


@pytest.mark.parametrize("key", [ApiKey.LIST_OFFSETS, ApiKey.DESCRIBE_CONFIGS])
def test_a_mistake_in_a_handler_is_noticed(key: ApiKey, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_request: Any, _context: Any) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr(
        "tests.support.world.load_handler", lambda asked: (fails, None) if asked is key else load_handler(asked)
    )
    report = fuzz_handlers(0, seed=7, requests=1)
    assert any("ZeroDivisionError" in wrong for wrong in report.wrong)
