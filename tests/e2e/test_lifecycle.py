"""Starting, stopping and being in each other's way: what a node says and does."""

import json
import signal
import socket
import subprocess
import sys
import urllib.request
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.e2e.clients import create_topic, read_all, send
from tests.support.node import Node

RIVERLOG: Final = str(Path(sys.executable).with_name("riverlog"))


@pytest.fixture
def busy_port() -> int:
    """A port that somebody else listens on."""
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        yield taken.getsockname()[1]


def fails(*arguments: str) -> str:
    """Run a command that must fail quickly; give the one sentence that it says."""
    done = subprocess.run([RIVERLOG, *arguments], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode not in (0, -signal.SIGKILL)
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    return done.stderr


def test_the_ready_line_is_all_of_standard_output_and_true(tmp_path: Path) -> None:
    with Node(tmp_path) as node:
        (line,) = (tmp_path / "node.out").read_text().splitlines()
        assert line.startswith("riverlog ready kafka=127.0.0.1:")
        assert node.addresses["data"] == str(node.data)
        with urllib.request.urlopen(f"{node.addresses['metrics']}/ready", timeout=10) as answer:
            assert json.load(answer) == {"status": "ready"}
        assert AdminClient({"bootstrap.servers": node.bootstrap}).list_topics(timeout=10).brokers
        assert "Traceback" not in node.log_tail()


def test_a_second_node_on_the_same_folder_is_refused(tmp_path: Path) -> None:
    with Node(tmp_path) as node:
        sentence = fails("dev", "--port", "0", "--data", str(node.data))
        assert str(node.data) in sentence
        create_topic(node.bootstrap, "still-here")
        assert send(node.bootstrap, "still-here", [b"x"]) == [0]
        assert node.stop() == 0


def test_dev_takes_the_next_port_and_says_so(tmp_path: Path, busy_port: int) -> None:
    node = Node(tmp_path, settings={"metrics.port": "0"})
    node.port = busy_port
    with node:
        assert node.port > busy_port
        assert f"{busy_port} is in use" in node.log_tail()


def test_serve_refuses_a_busy_port_and_names_the_flag(tmp_path: Path, busy_port: int) -> None:
    config = tmp_path / "server.properties"
    config.write_text(f"listeners=PLAINTEXT://127.0.0.1:{busy_port}\nlog.dirs={tmp_path / 'data'}\nmetrics.port=-1\n")
    sentence = fails("serve", "--config", str(config))
    assert str(busy_port) in sentence
    assert "--set listeners=" in sentence


def test_serve_runs_from_a_file(tmp_path: Path) -> None:
    config = tmp_path / "server.properties"
    config.write_text("listeners=PLAINTEXT://127.0.0.1:0\nlog.dirs=data\nmetrics.port=0\n")
    command = [RIVERLOG, "serve", "--config", str(config)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as serving:
        assert serving.stdout is not None
        try:
            ready = serving.stdout.readline()
            assert ready.startswith("riverlog ready kafka=127.0.0.1:")
            bootstrap = ready.split("kafka=")[1].split()[0]
            create_topic(bootstrap, "kept")
            assert send(bootstrap, "kept", [b"a", b"b"]) == [0, 1]
            status = subprocess.run([RIVERLOG, "cluster", "status", "-b", bootstrap, "-o", "json"], capture_output=True)
            assert str(tmp_path / "data") in status.stdout.decode(), "whoever asks is told where it really is"
        finally:
            serving.send_signal(signal.SIGTERM)
        assert serving.wait(20) == 0


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_cleanly_in_the_middle_of_traffic(tmp_path: Path, how: signal.Signals) -> None:
    acknowledged: dict[int, bytes] = {}

    def delivered(error: object, message: object) -> None:
        if error is None:
            acknowledged[message.offset()] = message.value()  # type: ignore[attr-defined] # it is a Message

    with Node(tmp_path, settings={"metrics.port": "0"}) as node:
        create_topic(node.bootstrap, "orders")
        producer = Producer(
            {"bootstrap.servers": node.bootstrap, "linger.ms": 0, "log_level": 0, "message.timeout.ms": 5_000}
        )
        number = 0
        while len(acknowledged) < 500:
            producer.produce("orders", b"%d" % number, partition=0, on_delivery=delivered)
            producer.poll(0)
            number += 1
        process = node._running()
        process.send_signal(how)
        for _ in range(500):
            producer.produce("orders", b"%d" % number, partition=0, on_delivery=delivered)
            number += 1
        assert process.wait(20) == 0
        producer.purge()
        producer.flush(5)
        assert "Traceback" not in node.log_tail()
        assert (node.data / ".kafka_cleanshutdown").exists()

        node.start()
        read = dict(read_all(node.bootstrap, TopicPartition("orders", 0)))
        assert acknowledged.items() <= read.items()
        assert not (node.data / ".kafka_cleanshutdown").exists()


def test_a_restart_keeps_cluster_topics_and_settings(tmp_path: Path) -> None:
    with Node(tmp_path, settings={"metrics.port": "0"}) as node:
        create_topic(node.bootstrap, "orders", partitions=3, config={"retention.ms": "12345"})
        admin = AdminClient({"bootstrap.servers": node.bootstrap})
        before = admin.describe_cluster().result()
        node.stop()
        node.start()
        assert admin.describe_cluster().result().cluster_id == before.cluster_id
        assert len(admin.list_topics(timeout=10).topics["orders"].partitions) == 3
        assert (node.data / "meta.properties").read_text().count(before.cluster_id) == 1
