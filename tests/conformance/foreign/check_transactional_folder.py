"""A folder with transactions goes from Apache Kafka to a node and back, and Kafka's tools read a node's.

Committed, aborted and open ones, and offsets that were committed with the output: whoever takes over the folder knows
how each was decided, and ends what is open.
"""

import asyncio
import os
import re
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from bench.cache import cache_folder
from bench.nodes import DATA_NAME, BrokerProcess
from bench.peer import Kafka
from riverlog import Admin
from riverlog.client.admin.transactions import TransactionDescription
from tests.conformance.adapters import Message
from tests.conformance.adapters.foreign import JavaClient
from tests.conformance.foreign.check_files import complaints
from tests.conformance.foreign.check_kafka_folder import kafka_settings
from tests.conformance.foreign.kafka_tools import dump
from tests.conformance.transacting import COMMITTED, EVERYTHING, committed, read
from tests.support.node import Node

pytestmark = pytest.mark.timeout(300)

ENDINGS: Final = ("stopped", "killed")
COPIED: Final = 5


@dataclass(frozen=True, slots=True)
class Seen:
    """What a broker shows of the transactions in its folder."""

    committed: list[bytes]
    everything: list[bytes]
    copies: list[bytes]
    group_offset: int | None
    ids: dict[str, TransactionDescription]


def write(bootstrap: str) -> Seen:
    """Write transactions of every kind, leave one open, and give what the broker shows then."""
    client = JavaClient(bootstrap)
    try:
        for topic in ("orders", "input", "copies"):
            client.create_topic(topic)
        writer = client.transactional("writer")
        for number, value in enumerate(EVERYTHING):
            writer.begin()
            writer.write("orders", value)
            writer.end(commits=number % 4 != 3)
        client.produce("input", [Message(value, partition=0) for value in EVERYTHING])
        for commits in (True, False):
            client.copy("input", "copies", group="copiers", transactional_id="copier", count=COPIED, commits=commits)
        left = client.transactional("left-open")
        left.begin()
        left.write("orders", b"undecided")
        return look(bootstrap)
    finally:
        client.close()


def look(bootstrap: str) -> Seen:
    return Seen(
        read(bootstrap, "orders", "read_committed"),
        read(bootstrap, "orders", "read_uncommitted"),
        read(bootstrap, "copies", "read_committed"),
        committed(bootstrap, "copiers", "input"),
        asyncio.run(_described(bootstrap)),
    )


async def _described(bootstrap: str) -> dict[str, TransactionDescription]:
    async with Admin(bootstrap) as admin:
        return {name: await admin.describe_transaction(name) for name in ("writer", "copier", "left-open")}


def check_taken_over(bootstrap: str, written: Seen) -> None:
    """Find all as it was, end what is open, and go on."""
    seen = look(bootstrap)
    assert seen == written
    assert (seen.committed, seen.everything) == (COMMITTED, [*EVERYTHING, b"undecided"])
    assert (seen.copies, seen.group_offset) == (EVERYTHING[:COPIED], COPIED)
    assert {name: each.state for name, each in seen.ids.items()} == {
        "writer": "CompleteAbort",
        "copier": "CompleteAbort",
        "left-open": "Ongoing",
    }
    client = JavaClient(bootstrap)
    try:
        for name in ("left-open", "writer"):
            writer = client.transactional(name)
            writer.begin()
            writer.write("orders", name.encode())
            writer.end(commits=True)
        client.copy("input", "copies", group="copiers", transactional_id="copier", count=COPIED, commits=True)
    finally:
        client.close()
    seen = look(bootstrap)
    assert seen.committed == [*COMMITTED, b"left-open", b"writer"]
    assert (seen.copies, seen.group_offset) == (EVERYTHING[: 2 * COPIED], 2 * COPIED)
    for name, each in seen.ids.items():
        before = written.ids[name]
        assert each.producer_id == before.producer_id
        assert each.producer_epoch > before.producer_epoch


@contextmanager
def kafka_at(home: Path, *, ended: str = "stopped") -> Iterator[str]:
    broker: BrokerProcess = Kafka(cache_folder()).start(home)
    try:
        yield f"{broker.host}:{broker.port}"
    finally:
        if ended == "killed":
            os.kill(broker.pid, signal.SIGKILL)
        broker.stop()


@pytest.fixture(scope="module", autouse=True)
def archives() -> None:
    Kafka(cache_folder()).prepare()


@pytest.mark.parametrize("ended", ENDINGS)
def test_a_node_takes_over_kafka_s_transactions(tmp_path: Path, ended: str) -> None:
    home = tmp_path / "kafka"
    home.mkdir()
    Kafka(cache_folder()).format(home)
    with kafka_at(home, ended=ended) as bootstrap:
        written = write(bootstrap)
    shutil.copytree(home / DATA_NAME, tmp_path / "data")
    with Node(tmp_path, settings={"node.id": "1"}) as node:
        check_taken_over(node.bootstrap, written)
        assert node.stop() == 0, node.log_tail()


@pytest.mark.parametrize("ended", ENDINGS)
def test_kafka_takes_over_a_node_s_transactions(tmp_path: Path, ended: str) -> None:
    with Node(tmp_path, settings={"node.id": "1"}) as node:
        written = write(node.bootstrap)
        if ended == "stopped":
            assert node.stop() == 0, node.log_tail()
    (tmp_path / "server.properties").write_text("\n".join(kafka_settings(node.data)))
    with kafka_at(tmp_path) as bootstrap:
        check_taken_over(bootstrap, written)


def test_kafka_s_tools_read_a_node_s_transactions(tmp_path: Path) -> None:
    with Node(tmp_path) as node:
        written = write(node.bootstrap)
        assert node.stop() == 0, node.log_tail()
    states = dump(_written(node.data, "__transaction_state-*/*.log"), "--transaction-log-decoder")
    offsets = dump(_written(node.data, "__consumer_offsets-*/*.log"), "--offsets-decoder")
    aborted = dump(_written(node.data, "orders-0/*.txnindex"))
    producers = dump(_written(node.data, "orders-0/*.snapshot"))
    for ran in (states, offsets, aborted, producers):
        assert ran.code == 0, ran.text
        assert complaints(ran.text) == []
    for name, held in written.ids.items():
        known = f'"transactionalId":"{name}"'
        last = [line for line in states.lines if known in line][-1]
        assert f'"producerId":{held.producer_id}' in last
        assert f'"producerEpoch":{held.producer_epoch}' in last
    assert '"group":"copiers","topic":"input","partition":0' in offsets.text
    assert len(re.findall("endTxnMarker: COMMIT", offsets.text)) == 1
    assert len(re.findall("endTxnMarker: ABORT", offsets.text)) == 1
    assert len(re.findall(r"producerId: \d+", aborted.text)) == len(EVERYTHING) - len(COMMITTED)
    undecided = written.ids["left-open"]
    began = len(EVERYTHING) * 2  # each transaction has left a record and a marker
    assert f"producerId: {undecided.producer_id} producerEpoch: {undecided.producer_epoch}" in producers.text
    assert re.search(rf"currentTxnFirstOffset: \D*{began}\b", producers.text), producers.text


def _written(data: Path, pattern: str) -> list[Path]:
    return [each for each in sorted(data.glob(pattern)) if each.stat().st_size]
