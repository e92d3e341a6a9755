"""Batches of a pipeline over a real node that is killed: output and `commits/N` agree, and each batch counts once."""

import asyncio
import http.client
import itertools
import json
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition

from riverlog import KafkaError, Member, NewRecord
from riverlog.checkpoints.files.refusals import RequestRefused
from riverlog.checkpoints.sink import SinkCalls
from riverlog.client.producer.shared_transactions import Membership, SharedBatch
from tests.e2e.clients import create_topic, read_all
from tests.support.node import Node
from tests.support.waiting import until
from tests.support.webhdfs import WebHdfs

ROOT = "/pipelines/revenue"
TOPIC = "revenue"
BATCHES = 30


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    with Node(tmp_path, settings={"metrics.port": "-1", "checkpoints.port": "0"}) as node:
        node.settings["checkpoints.port"] = node.addresses["checkpoints"].rpartition(":")[2]
        yield node


class Driver:
    """Runs batches as Spark does, and starts again as another run whenever something fails."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.done = 0
        self.runs = 0

    def drive(self) -> None:
        for run in itertools.count():
            self.runs = run + 1
            try:
                with WebHdfs(self.node.addresses["checkpoints"]) as store:
                    self._run(store, f"run-{run}")
                return
            except (OSError, http.client.HTTPException, KafkaError, RequestRefused, AssertionError):
                continue  # the next run finds out what is committed

    def _run(self, store: WebHdfs, run: str) -> None:
        listed = store.ask("GET", f"{ROOT}/commits", "LISTSTATUS")
        assert listed.status in (200, 404)
        self.done = len([name for name in store.names(f"{ROOT}/commits") if name.isdigit()])
        with closing(SinkCalls(f"{self.node.addresses['checkpoints']}{ROOT}", seconds_max=5)) as calls:
            while self.done < BATCHES:
                self._batch(store, calls, run, self.done)
                self.done += 1

    def _batch(self, store: WebHdfs, calls: SinkCalls, run: str, number: int) -> None:
        memberships = []
        if str(number) not in store.names(f"{ROOT}/offsets"):
            assert store.create(f"{ROOT}/offsets/{number}", b"v1\n{}\n").status == 201
        for task in range(2):
            batch = calls.begin(query="q", run=run, batch=number)
            memberships.append(asyncio.run(self._task(batch, task, run)))
        calls.announce(query="q", run=run, batch=number, memberships=memberships)
        temporary = f"{ROOT}/commits/.{number}.{run}.tmp"
        assert store.create(temporary, b"v2\n" + json.dumps({"run": run}).encode()).status == 201
        assert store.rename(temporary, f"{ROOT}/commits/{number}").facts == {"boolean": True}

    async def _task(self, batch: SharedBatch, task: int, run: str) -> Membership:
        options = {"delivery_timeout_ms": 5_000, "request_timeout_ms": 4_000, "block_ms_max": 4_000}
        async with Member(self.node.bootstrap, batch, task=task, attempt=0, **options) as member:
            await member.write([NewRecord(TOPIC, f"{batch.number} {task} {run}".encode())])
            return await member.finish()


def test_each_batch_counts_once_over_kills_of_the_node(node: Node) -> None:
    create_topic(node.bootstrap, TOPIC)
    driver = Driver(node)
    driving = threading.Thread(target=driver.drive)
    driving.start()
    for done in (5, 12, 20):
        until(lambda: driver.done >= done, lambda: f"{driver.done} batches\n{node.log_tail()}", seconds_max=60)  # noqa: B023
        node.kill()
        node.start()
    until(lambda: not driving.is_alive(), lambda: f"{driver.done} batches\n{node.log_tail()}", seconds_max=90)
    with WebHdfs(node.addresses["checkpoints"]) as store:
        runs = [json.loads(store.open(f"{ROOT}/commits/{number}").splitlines()[1])["run"] for number in range(BATCHES)]
    expected = [f"{number} {task} {run}".encode() for number, run in enumerate(runs) for task in range(2)]
    assert driver.runs > 1

    def output() -> list[bytes]:
        return [value for _, value in read_all(node.bootstrap, TopicPartition(TOPIC, 0))]

    until(lambda: len(output()) >= len(expected), lambda: f"{len(output())} records of {len(expected)}")  # markers
    assert sorted(output()) == sorted(expected)
