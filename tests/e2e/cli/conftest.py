"""A node for the tests of a module, and a shell that talks to it."""

from collections.abc import Iterator

import pytest

from tests.support.node import Node
from tests.support.shell import Shell


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with Node(tmp_path_factory.mktemp("cli"), settings={"checkpoints.port": "0"}) as node:
        yield node


@pytest.fixture
def shell(node: Node, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.setenv("RIVERLOG_BOOTSTRAP_SERVERS", node.bootstrap)
    return Shell(capfdbinary)
