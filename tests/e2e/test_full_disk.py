"""A full disk: writes are refused with the right code and go on once there is room; reads never stop."""

import json
import os
import re
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import KafkaError, Message, Producer, TopicPartition

from tests.e2e.clients import create_topic, read_all, send
from tests.support.node import Node
from tests.support.shell import PROGRAM

MIB: Final = 1024 * 1024


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 96 MiB, of which the node keeps 32 in reserve."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small file system")
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=96m", "riverlog-test", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"tmpfs cannot be mounted here: {mounted.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def errors_of_one_send(bootstrap: str, size: int) -> list[str]:
    """Send one record without retries; give the error it came to, if any."""
    errors: list[str] = []

    def delivered(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            errors.append(error.name())

    producer = Producer({"bootstrap.servers": bootstrap, "retries": 0, "message.timeout.ms": 10_000, "log_level": 0})
    producer.produce("orders", bytes(size), partition=0, on_delivery=delivered)
    producer.flush(20)
    return errors


def riverlog(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=60, check=False)


def told_by_ready(node: Node) -> str:
    """Return the status and the reason why the node is not ready; `ready` where it is."""
    try:
        with urllib.request.urlopen(f"{node.addresses['metrics']}/ready") as answer:
            return str(json.load(answer)["status"])
    except urllib.error.HTTPError as refusal:
        return f"{refusal.code}: {json.load(refusal)['reason']}"


def test_writes_stop_and_go_on_while_reads_continue(small_disk: Path) -> None:
    with Node(small_disk) as node:
        create_topic(node.bootstrap, "orders", config={"segment.bytes": str(MIB)})
        kept = [b"%d" % number for number in range(100)]
        send(node.bootstrap, "orders", kept)
        ballast = small_disk / "ballast"
        with ballast.open("wb") as file:
            file.write(bytes(50 * MIB))

        deadline = time.monotonic() + 30
        while (errors := errors_of_one_send(node.bootstrap, MIB // 2)) == []:
            assert time.monotonic() < deadline, "the disk never became full"
        assert errors == ["KAFKA_STORAGE_ERROR"]

        assert re.match("503: log directory .* is full; free some room", told_by_ready(node))
        status = riverlog("cluster", "status", "-b", node.bootstrap, "-o", "json")
        assert json.loads(status.stdout)["log_dirs"][0]["full"] is True
        assert "full: no writes" in riverlog("cluster", "status", "-b", node.bootstrap, "-o", "table").stdout
        examined = riverlog("doctor", "-b", node.bootstrap)
        assert (examined.returncode, "is full: it takes no more records" in examined.stdout) == (5, True)

        read = read_all(node.bootstrap, TopicPartition("orders", 0))
        assert [value for _, value in read[:100]] == kept

        ballast.unlink()
        deadline = time.monotonic() + 60
        while (errors := errors_of_one_send(node.bootstrap, 10)) != []:
            assert time.monotonic() < deadline, f"there is room again, but writes end in {errors}\n{node.log_tail()}"
        assert len(read_all(node.bootstrap, TopicPartition("orders", 0))) == len(read) + 1
        assert told_by_ready(node) == "ready"
        assert riverlog("doctor", "-b", node.bootstrap).returncode == 0
        assert node.stop() == 0
