"""Apache Kafka and a node, side by side, for the files that ask both the same."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.cache import cache_folder
from bench.peer import Kafka
from riverlog.model.ids import Address
from tests.support.node import Node


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    kafka = Kafka(cache_folder())
    kafka.prepare()
    home: Path = tmp_path_factory.mktemp("kafka")
    kafka.format(home)
    with (home / "server.properties").open("a") as settings:
        settings.write("\ntransaction.abort.timed.out.transaction.cleanup.interval.ms=100\n")
    broker = kafka.start(home)
    yield Address(broker.host, broker.port)
    broker.stop()


@pytest.fixture(scope="module")
def riverlog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    with Node(tmp_path_factory.mktemp("node")) as node:
        yield Address("127.0.0.1", node.port)
