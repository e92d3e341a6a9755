"""Nodes of our own as the benchmark starts them."""

from pathlib import Path

from bench import nodes
from bench.nodes import BrokerProcess, Riverlog


def test_a_node_tells_where_it_serves_checkpoints_and_takes_settings(tmp_path: Path) -> None:
    with nodes.running(Riverlog(tmp_path / "cache").flushing(), tmp_path / "node") as node:
        assert isinstance(node, BrokerProcess)
        assert node.service("checkpoints").startswith("webhdfs://127.0.0.1:")
        assert node.service("kafka") == f"127.0.0.1:{node.port}"
