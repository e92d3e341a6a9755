"""What is tried again, and for how long."""

import errno
from collections.abc import Callable

import pytest

from riverlog.controller.limits import METADATA_TRIES_MAX
from riverlog.controller.patience import ClosedMeanwhile, Patience
from riverlog.model.disk_errors import FlushFailed
from tests.support.virtual_time import run
from tests.unit.controller.metadata_node import TurnLater


def failing(times: int, error: OSError) -> Callable[[], str]:
    left = [error] * times

    def work() -> str:
        if left:
            raise left.pop()
        return "done"

    return work


@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EMFILE])
def test_what_may_pass_is_waited_out(number: int, beside: bool) -> None:
    async def scenario() -> None:
        patience = Patience(TurnLater())
        assert await patience.insist(failing(50, OSError(number, "")), beside=beside) == "done"
        assert await patience.insist(failing(METADATA_TRIES_MAX - 1, OSError(number, "")), beside=beside) == "done"

    run(scenario())


def test_what_hinders_for_long_is_an_error_and_a_full_disk_is_not() -> None:
    async def scenario() -> None:
        with pytest.raises(OSError, match=r"."):
            await Patience(TurnLater()).insist(failing(METADATA_TRIES_MAX, OSError(errno.EMFILE, "")), beside=True)
        waits = failing(10 * METADATA_TRIES_MAX, OSError(errno.ENOSPC, ""))
        assert await Patience(TurnLater()).insist(waits, beside=True) == "done"

    run(scenario())


def test_a_failed_flush_is_never_tried_again() -> None:
    async def scenario() -> None:
        with pytest.raises(FlushFailed):
            await Patience(TurnLater()).insist(failing(1, FlushFailed(errno.ENOSPC, "")), beside=True)

    run(scenario())


def test_nothing_is_tried_again_when_nobody_waits() -> None:
    patience = Patience(TurnLater())
    patience.close()
    with pytest.raises(ClosedMeanwhile):
        patience.may_pass(OSError(errno.ENOSPC, ""))
