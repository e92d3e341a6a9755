"""What the tests with real processes need."""

import signal

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Forgive a client the old-fashioned ways of its own modules; our warnings stay errors."""
    for module in ("kafka", "importlib"):
        config.addinivalue_line("filterwarnings", rf"ignore::DeprecationWarning:{module}\.")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as behind `nohup`: what is started here must hear Ctrl-C
        signal.signal(signal.SIGINT, signal.default_int_handler)
