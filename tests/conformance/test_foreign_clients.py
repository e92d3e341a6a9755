"""A client whose toolchain is missing is named with what is missing, so that it cannot go unnoticed."""

import pytest

from tests.conformance.adapters.registry import FOREIGN_CLIENTS, why_missing

MISSING = {"KafkaJS": "no node and no npm", "Java client": "no java and no javac", "franz-go": "no go"}


@pytest.mark.parametrize("name", FOREIGN_CLIENTS)
def test_a_missing_toolchain_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert why_missing(name) == f"{name} is not installed: {MISSING[name]} on this machine"
