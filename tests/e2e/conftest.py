"""What the tests with real processes need."""

import signal


def pytest_configure() -> None:
    """Make processes that are started here hear Ctrl-C, also behind `nohup`."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
