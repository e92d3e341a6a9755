"""A broker of Apache Kafka at our controllers, beside a broker of our own: it serves, stops, dies and comes back.

Nothing is replicated here: each partition has one replica, on either of the brokers.
"""

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from bench.cache import cache_folder
from bench.nodes import HOST, BrokerProcess, free_port
from bench.peer import Kafka
from tests.conformance.adapters import Deadline
from tests.conformance.foreign.build import JAVA, class_path
from tests.conformance.foreign.kafka_tools import Ran, dump, run
from tests.support.cluster_processes import BROKER, CLUSTER_ID, CONTROLLER, ClusterProcesses

CONTROLLERS: Final = (1, 2, 3)
OURS: Final = 4
THEIRS: Final = 7
COMPLAINTS: Final = re.compile(r".* (?:ERROR|FATAL) .*|.*Unable to register.*|.*received error.*|.*marked as failed.*")


class KafkaBroker:
    """Apache Kafka's broker with two log directories, in a process of its own."""

    def __init__(self, home: Path, controllers: str) -> None:
        self.home = home
        self.port = free_port()
        self.directories = [home / "a", home / "b"]
        self._settings = home / "server.properties"
        for directory in self.directories:
            directory.mkdir(parents=True)
        self._settings.write_text("\n".join(self._properties(controllers)))
        self._process: BrokerProcess | None = None

    @property
    def bootstrap(self) -> str:
        return f"{HOST}:{self.port}"

    def format(self) -> None:
        """Prepare its directories for our cluster."""
        tool = ("kafka.tools.StorageTool", "format", f"--cluster-id={CLUSTER_ID}", "-c", str(self._settings))
        done = subprocess.run([*JAVA, "-cp", class_path(), *tool], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self) -> None:
        """Start it, and return when it answers."""
        options = ("-Xmx512m", f"-Dlog4j2.configurationFile={self._logging()}")
        command = ["java", *options, "kafka.Kafka", str(self._settings)]
        self._process = BrokerProcess.start(command, self.port, self.home, CLASSPATH=class_path())

    def stop(self) -> None:
        """Stop it in good order; a minute is enough."""
        if self._process is not None:
            self._process.stop()
            self._process = None

    def kill(self) -> None:
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process = None

    def complaints(self) -> list[str]:
        """Return what it has logged that should not be."""
        return [
            line for path in self.home.glob("*.log") for line in COMPLAINTS.findall(path.read_text(errors="replace"))
        ]

    def _logging(self) -> Path:
        """Write what Kafka logs, warnings and worse, to its output."""
        path = self.home / "log4j2.properties"
        path.write_text(
            "appender.out.type=Console\nappender.out.name=out\nappender.out.layout.type=PatternLayout\n"
            "appender.out.layout.pattern=%d %p %m (%c)%n\nrootLogger.level=warn\nrootLogger.appenderRef.out.ref=out\n"
        )
        return path

    def _properties(self, controllers: str) -> list[str]:
        return [
            "process.roles=broker",
            f"node.id={THEIRS}",
            f"listeners=PLAINTEXT://{self.bootstrap}",
            "controller.listener.names=CONTROLLER",
            "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            f"controller.quorum.bootstrap.servers={controllers}",
            f"log.dirs={','.join(map(str, self.directories))}",
            "offsets.topic.replication.factor=1",
            "transaction.state.log.replication.factor=1",
            "transaction.state.log.min.isr=1",
            "group.initial.rebalance.delay.ms=0",
        ]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcesses]:
    folder: Path = tmp_path_factory.mktemp("cluster")
    with ClusterProcesses(folder, {**dict.fromkeys(CONTROLLERS, CONTROLLER), OURS: BROKER}) as cluster:
        cluster.start()
        yield cluster
        for node in (*CONTROLLERS, OURS):
            assert '"exception contained"' not in cluster.log(node).read_text(), cluster.log_tail(node)


@pytest.fixture(scope="module")
def kafka(cluster: ClusterProcesses, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    Kafka(cache_folder()).prepare()
    broker = KafkaBroker(
        tmp_path_factory.mktemp("kafka"), ",".join(cluster.controller_address(node) for node in CONTROLLERS)
    )
    broker.format()
    broker.start()
    yield broker
    broker.stop()
    assert broker.complaints() == []


@pytest.fixture
def tool(kafka: KafkaBroker) -> Callable[..., Ran]:
    """Return a way to run a tool against Kafka's broker; it must end well."""

    def run_well(name: str, *arguments: str, given: str = "", at: str = "") -> Ran:
        address = ("--bootstrap-server", at or kafka.bootstrap)
        ran = run(name, *((*arguments, *address) if name == "ClusterTool" else (*address, *arguments)), given=given)
        assert ran.code == 0, ran.text
        return ran

    return run_well


def records(cluster: ClusterProcesses) -> list[dict[str, Any]]:
    """Return the metadata records that a controller has."""
    folder = cluster.folder / str(CONTROLLERS[0]) / "__cluster_metadata-0"
    dumped = dump([folder / f"{0:020}.log"], "--cluster-metadata-decoder", "--skip-record-metadata")
    return [json.loads(line.partition("payload: ")[2]) for line in dumped.lines if "payload: " in line]


def leaders(tool: Callable[..., Ran], topic: str, at: str = "") -> list[str]:
    lines = tool("TopicCommand", "--describe", "--topic", topic, at=at).lines[1:]
    return [found[1] for line in lines if (found := re.search(r"\tLeader: (\S+)\t", line))]


def test_it_joins_and_both_serve_a_topic(tool: Callable[..., Ran], cluster: ClusterProcesses) -> None:
    _head, *nodes = (line.split() for line in tool("ClusterTool", "list-endpoints").lines)
    assert [(node[0], node[4]) for node in nodes] == [(str(OURS), "unfenced"), (str(THEIRS), "unfenced")]
    tool("TopicCommand", "--create", "--topic", "shared", "--partitions", "8")
    assert sorted(leaders(tool, "shared")) == [str(OURS)] * 4 + [str(THEIRS)] * 4
    keyed = [f"k{number}:{number}" for number in range(100)]
    for at in ("", cluster.bootstrap()):
        tool("ConsoleProducer", "--topic", "shared", "--property", "parse.key=true", "--property", "key.separator=:",
             given="\n".join(keyed) + "\n", at=at)  # fmt: skip
    for at in ("", cluster.bootstrap()):
        read = ("--from-beginning", "--max-messages", "200", "--timeout-ms", "20000", "--group", f"readers{at[-2:]}")
        lines = tool("ConsoleConsumer", "--topic", "shared", *read, at=at).lines
        assert sorted(line for line in lines if line.isdigit()) == sorted(2 * [str(number) for number in range(100)])


def test_it_transacts_with_producer_ids_of_our_controller(tool: Callable[..., Ran], kafka: KafkaBroker) -> None:
    for topic in ("source", "target"):
        tool("TopicCommand", "--create", "--topic", topic, "--partitions", "1")
    values = [str(number) for number in range(1_000)]
    tool("ConsoleProducer", "--topic", "source", given="\n".join(values) + "\n")
    topics = ("--input-topic", "source", "--input-partition", "0", "--output-topic", "target")
    sizes = ("--max-messages", "1000", "--transaction-size", "100", "--enable-random-aborts")
    names = ("--consumer-group", "copiers", "--transactional-id", "copier")
    copied = run("TransactionalMessageCopier", "--broker-list", kafka.bootstrap, *topics, *sizes, *names)
    assert copied.code == 0, copied.text
    committed = ("--isolation-level", "read_committed", "--max-messages", "1000", "--timeout-ms", "20000")
    read = tool("ConsoleConsumer", "--topic", "target", "--from-beginning", *committed).lines
    assert [line for line in read if line.isdigit()] == values


def test_it_follows_the_next_controller(tool: Callable[..., Ran], cluster: ClusterProcesses) -> None:
    status = tool("MetadataQuorumCommand", "describe", "--status").text
    found = re.search(r"LeaderId:\s+(\d+)", status)
    assert found is not None
    leader = int(found[1])
    cluster.kill(leader)
    tool("TopicCommand", "--create", "--topic", "after", "--partitions", "2")
    assert sorted(leaders(tool, "after")) == [str(OURS), str(THEIRS)]
    cluster.start(leader)


def test_it_says_where_it_finds_what_was_moved(
    tool: Callable[..., Ran], cluster: ClusterProcesses, kafka: KafkaBroker
) -> None:
    kafka.stop()
    assert leaders(tool, "shared", at=cluster.bootstrap()).count("none") == 4, "it was let go"
    here, there = kafka.directories
    moved = next(path for path in here.iterdir() if path.name.startswith("shared-"))
    index = int(moved.name.rpartition("-")[2])
    shutil.move(moved, there / moved.name)
    kafka.start()
    directory = re.search(r"directory\.id=(.*)", (there / "meta.properties").read_text())
    assert directory is not None
    deadline = Deadline()
    while deadline.left():
        changes = [each["data"] for each in records(cluster) if each["type"] == "PARTITION_CHANGE_RECORD"]
        if any((each["partitionId"], each.get("directories")) == (index, [directory[1]]) for each in changes):
            break
    else:
        pytest.fail("the controllers do not hear of it")
    assert leaders(tool, "shared").count(str(THEIRS)) == 4


def test_it_is_missed_when_it_dies_and_led_again(
    tool: Callable[..., Ran], cluster: ClusterProcesses, kafka: KafkaBroker
) -> None:
    kafka.kill()
    assert leaders(tool, "shared", at=cluster.bootstrap()).count("none") == 4, "a tool takes a second to start"
    kafka.start()
    deadline = Deadline()
    while deadline.left() and leaders(tool, "shared").count(str(THEIRS)) < 4:
        pass
    read = ("--from-beginning", "--max-messages", "200", "--timeout-ms", "20000")
    lines = tool("ConsoleConsumer", "--topic", "shared", *read).lines
    assert sorted(line for line in lines if line.isdigit()) == sorted(2 * [str(number) for number in range(100)])
