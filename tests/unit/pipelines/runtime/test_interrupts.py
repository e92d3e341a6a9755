"""Ctrl-C is noted where PySpark would answer it, and left alone everywhere else."""

import signal
import threading
from collections.abc import Iterator

import pytest

from riverlog.pipelines.runtime.interrupts import interrupts


def theirs(_number: int, _frame: object) -> None:
    raise AssertionError("PySpark was asked")


@pytest.fixture
def as_pyspark() -> Iterator[None]:
    """Make the signal be taken by a function of PySpark's."""
    theirs.__module__ = "pyspark.core.context"
    before = signal.signal(signal.SIGINT, theirs)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def as_python() -> Iterator[None]:
    """Return the signal to Python, whatever a test with a Spark of its own has left in this process."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("as_pyspark")
def test_the_first_is_noted_and_the_second_is_raised() -> None:
    with interrupts() as found:
        signal.raise_signal(signal.SIGINT)
        assert found.noted
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is theirs


@pytest.mark.usefixtures("as_python")
def test_whoever_else_takes_the_signal_keeps_it() -> None:
    with interrupts() as found, pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    assert not found.noted


@pytest.mark.usefixtures("as_pyspark")
def test_another_thread_leaves_it_alone() -> None:
    handlers: list[object] = []

    def wait() -> None:
        with interrupts():
            handlers.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=wait)
    thread.start()
    thread.join()
    assert handlers == [theirs]
