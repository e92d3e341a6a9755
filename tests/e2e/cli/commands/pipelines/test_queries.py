"""Queries as the command line shows them: a checkpoint as any Spark writes it, and a driver that reports."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from riverlog.checkpoints.files.refusals import RequestRefused
from riverlog.checkpoints.remote import RemoteStore
from riverlog.cli.main import main
from riverlog.cli.terminal.exits import ExitCode
from tests.e2e.clients import create_topic, send
from tests.support.node import Node
from tests.support.webhdfs import WebHdfs

PATH = "/pipelines/revenue"


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    with Node(tmp_path, settings={"metrics.port": "-1", "checkpoints.port": "0"}) as node:
        node.settings["checkpoints.port"] = node.addresses["checkpoints"].rpartition(":")[2]
        yield node


def plan(store: WebHdfs, number: int, offset: int, watermark_ms: int) -> None:
    text = f'v1\n{{"batchWatermarkMs":{watermark_ms}}}\n{{"orders":{{"0":{offset}}}}}'
    assert store.create(f"{PATH}/offsets/.{number}.a.tmp", text.encode()).status == 201
    assert store.rename(f"{PATH}/offsets/.{number}.a.tmp", f"{PATH}/offsets/{number}").facts == {"boolean": True}


def commit(store: WebHdfs, number: int) -> None:
    assert store.create(f"{PATH}/commits/.{number}.a.tmp", b"v2\n{}").status == 201
    assert store.rename(f"{PATH}/commits/.{number}.a.tmp", f"{PATH}/commits/{number}").facts == {"boolean": True}


def shown(capsys: pytest.CaptureFixture[str], node: Node, *arguments: str) -> str:
    code = main(["pipelines", *arguments, "--store", node.addresses["checkpoints"]])
    out, err = capsys.readouterr()
    assert (code, err) == (ExitCode.DONE, "")
    return out


def test_any_query_is_shown_and_more_where_its_driver_reports(node: Node, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, node, "list", "-o", "json") == ""
    create_topic(node.bootstrap, "orders")
    send(node.bootstrap, "orders", [b"order"] * 10)
    address = node.addresses["checkpoints"]
    with WebHdfs(address) as store:
        plan(store, 0, 4, 0)
        commit(store, 0)
        plan(store, 1, 9, 5_000)
    (listed,) = map(json.loads, shown(capsys, node, "list").splitlines())
    assert listed == listed | {"pipeline": "revenue", "state": "unknown", "batch": 0, "planned_batch": 1, "lag": 6}
    assert listed["watermark_ms"] == 5_000
    began_ms = int(time.time() * 1000)
    report: dict[str, Any] = {"query": "q", "run": "r", "state": "running", "began_ms": began_ms}
    with RemoteStore(address) as remote:
        remote.report(PATH, {**report, "batch": 0, "rows": 4, "rows_per_second": 80.0, "late_rows": 2})
        with pytest.raises(RequestRefused, match="does not exist"):
            remote.report("/pipelines/other", report)
        printed = json.loads(shown(capsys, node, "describe", "revenue", "-o", "json"))
        assert printed == printed | {
            "state": "running",
            "since_ms": began_ms,
            "rows_per_second": 80.0,
            "late_rows": 2,
        }
        assert printed["partitions"] == [{"topic": "orders", "partition": 0, "offset": 4, "end": 10, "lag": 6}]
        remote.report(PATH, {**report, "state": "failed", "ended_ms": began_ms + 1, "error": "no", "error_ms": 1})
    assert "state: failed\n" in shown(capsys, node, "describe", "--pipeline", "revenue", "-o", "yaml")
    node.stop()
    node.start()
    text = shown(capsys, node, "describe", PATH)
    assert text.startswith("Pipeline revenue: State=failed, Since=2")
    assert "Last error, 1970-01-01T00:00:00Z: no\n" in text
    assert shown(capsys, node, "list", "-o", "table").count("revenue") == 1
    assert main(["pipelines", "describe", "other", "--store", address]) == ExitCode.REFUSED
    assert "there is no pipeline other; `riverlog pipelines list` shows what there is" in capsys.readouterr().err
    assert main(["lag", "--group", "revenue", "-b", node.bootstrap, "-o", "json"]) == ExitCode.DONE
    assert json.loads(capsys.readouterr().out)["lag"] == 6


def test_the_address_of_the_broker_is_no_checkpoint_store(node: Node, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pipelines", "list", "--store", node.bootstrap]) == ExitCode.UNREACHABLE
    said = f"no checkpoint store answers at {node.bootstrap}: it closes the connection"
    assert capsys.readouterr().err == f"riverlog: {said}; the ready line of a node names it\n"
