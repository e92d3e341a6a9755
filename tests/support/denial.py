"""An authoriser that says no to what a test names."""

import pytest

from riverlog.model.access import Operation, Principal, ResourceType


class Denying:
    """Denies the given operations and allows all others."""

    def __init__(self, *denied: Operation) -> None:
        self._denied = denied

    version = 0

    def allows(self, who: Principal, operation: Operation, resource: ResourceType, name: str) -> bool:
        return operation not in self._denied


def deny(monkeypatch: pytest.MonkeyPatch, *denied: Operation) -> None:
    """Make nodes that are started from here on deny these operations."""
    for module in ("riverlog.node", "riverlog.node_controller"):
        monkeypatch.setattr(f"{module}.AllowEveryone", lambda: Denying(*denied))
