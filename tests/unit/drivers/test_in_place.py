"""Work for other processes, done by the workers."""

from collections.abc import Iterator
from random import Random

import pytest

from riverlog.drivers.in_place import InPlace
from tests.support.virtual_time import run
from tests.support.world import PatientWorkers


def numbers() -> Iterator[int]:
    yield 1
    yield 2
    raise OSError("the disk is gone")


def test_results_come_one_by_one_and_errors_as_they_are() -> None:
    async def scenario() -> None:
        processes = InPlace(PatientWorkers(Random(0)))
        results = processes.stream(numbers)
        assert [await anext(results), await anext(results)] == [1, 2]
        with pytest.raises(OSError, match="the disk is gone"):
            await anext(results)
        await processes.close()

    run(scenario())
