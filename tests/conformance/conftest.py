"""The broker under test: a node of our own, or any cluster named by CONFORMANCE_BOOTSTRAP."""

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conformance import raw
from tests.conformance.adapters import Deadline
from tests.support.node import Node


@pytest.fixture(scope="session")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the address of one broker for all tests; our own must still run at the end, and stop cleanly."""
    if given := os.environ.get("CONFORMANCE_BOOTSTRAP"):
        yield given
        return
    folder: Path = tmp_path_factory.mktemp("node")
    with Node(folder) as node:
        yield node.bootstrap
        assert node.stop() == 0, node.log_tail()


@pytest.fixture(scope="session")
def fresh_name() -> Callable[[], str]:
    """Return topic names that nobody used before, also on a broker that outlives this run."""
    numbers = itertools.count()
    run = os.urandom(3).hex()
    return lambda: f"conformance-{run}-{next(numbers)}"


@pytest.fixture(scope="session")
def new_topic(bootstrap: str, fresh_name: Callable[[], str]) -> Callable[..., str]:
    """Return a way to create topics that depends on none of the clients under test."""

    def create(*, partitions: int = 1, **configs: str) -> str:
        name = fresh_name()
        with raw.Connection(bootstrap) as connection:
            named = {key.replace("_", "."): value for key, value in configs.items()}
            assert raw.create_topic(connection, name, partitions=partitions, configs=named) == 0
            for partition in range(partitions):
                _await_leader(connection, name, partition)
        return name

    return create


def _await_leader(connection: raw.Connection, topic: str, partition: int) -> None:
    """Wait until a new partition answers; Kafka says that a topic is created some time before it is."""
    deadline = Deadline()
    while deadline.left():
        answer = connection.request(raw.FETCH, raw.FETCH_VERSION, raw.fetch_body(topic, 0, partition=partition))
        if raw.fetched(answer).error == 0:
            return
