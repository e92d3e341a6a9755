"""Lets go of what workers of Spark keep from task to task: here the worker is the process of the tests."""

from collections.abc import Iterator

import pytest

from riverlog.spark.sink.commit_strategies import CALLS
from riverlog.spark.sink.row_sender import CONNECTIONS


@pytest.fixture(scope="module", autouse=True)
def let_go() -> Iterator[None]:
    """Close the connections of a module's tasks."""
    yield
    CONNECTIONS.close()
    CALLS.close()
