"""The benchmark's lines of Spark, each as small as can be: every number is measured, at our node and at Kafka."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import nodes
from bench.cache import cache_folder
from bench.lines import select
from bench.nodes import Riverlog
from bench.peer import Kafka
from bench.runner import OURS
from bench.trial import Contender, Line, Node, Trial
from bench.workshop import Workshop

LINES = select(["spark"])
CONTENDERS = {OURS: Riverlog, Kafka.name: Kafka}

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    with Workshop(tmp_path_factory.mktemp("spark")) as shared:
        yield shared


@pytest.fixture(scope="module")
def contender(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Contender, Node]]:
    chosen = CONTENDERS[request.param](cache_folder())
    chosen.prepare()
    with nodes.running(chosen, tmp_path_factory.mktemp("broker")) as node:
        yield chosen, node


@pytest.mark.parametrize(
    ("contender", "line"),
    [
        pytest.param(name, line, id=f"{line.name} at {name}")
        for name in CONTENDERS
        for line in LINES
        if name == OURS or not line.ours_only
    ],
    indirect=["contender"],
)
def test_every_number_of_a_line_is_measured(
    line: Line, contender: tuple[Contender, Node], workshop: Workshop, tmp_path: Path
) -> None:
    broker, node = contender
    values = line.probe(Trial(broker, node, tmp_path, 0.5, workshop))
    names = {row.name for row in line.rows}
    if broker.name == OURS:
        assert values.keys() == names
    assert values.keys() <= names
    assert any("connector" in name or name == "folder" for name in values)
    assert all(value > 0 for value in values.values())
