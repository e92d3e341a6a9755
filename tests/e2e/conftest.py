"""What the tests with real processes need."""

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Forgive a client the old-fashioned ways of its own modules; our warnings stay errors."""
    for module in ("kafka", "importlib"):
        config.addinivalue_line("filterwarnings", rf"ignore::DeprecationWarning:{module}\.")
