"""Apache Kafka as the peer: its archives fetched once, one node at a time on loopback.

The node is broker and controller in one, with the memory and collector settings of Kafka's own start script.
Everything else is Kafka's default, except what a single node and a fresh topic per run need.
"""

import os
import shutil
import subprocess
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from bench import jars
from bench.jars import Artifact, Dependency
from bench.nodes import DATA_NAME, DELETE_AT_ONCE, HOST, BrokerProcess, free_port
from bench.trial import Failed, NotRun

VERSION: Final = "4.3.1"
LOGGING_VERSION: Final = "2.24.3"
ARCHIVES: Final = (
    Dependency(Artifact("org.apache.kafka", "kafka_2.13"), VERSION),
    Dependency(Artifact("org.apache.kafka", "kafka-tools"), VERSION),
    Dependency(Artifact("org.apache.kafka", "kafka-streams"), VERSION),
    Dependency(Artifact("org.apache.logging.log4j", "log4j-slf4j-impl"), LOGGING_VERSION),
    Dependency(Artifact("org.apache.logging.log4j", "log4j-core"), LOGGING_VERSION),
)
JVM_OPTIONS: Final = (
    "-server",
    "-Xmx1G",
    "-Xms1G",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)


class Kafka:
    """Apache Kafka, single node."""

    name = "Kafka"
    command = f"java {' '.join(JVM_OPTIONS)} kafka.Kafka server.properties"
    warm_seconds = 35.0
    durable_topic: Mapping[str, str] = {"flush.messages": "1"}

    def __init__(self, cache: Path) -> None:
        self._libraries = cache / f"kafka-{VERSION}"
        self._class_path = f"{self._libraries}/*"

    def prepare(self) -> str:
        """Fetch the archives unless an earlier run has, and give the version."""
        if shutil.which("java") is None:
            raise NotRun("no Java is installed")
        complete = self._libraries / "complete"
        if not complete.exists():
            try:
                jars.fetch(ARCHIVES, self._libraries)
            except OSError as error:
                raise NotRun(f"its archives cannot be fetched: {error}") from error
            complete.touch()
        said = subprocess.run(["java", "-version"], capture_output=True, text=True).stderr
        return f"{VERSION} ({said.partition(chr(10))[0]})"

    def format(self, folder: Path) -> None:
        """Write the settings and format the folder for them."""
        port, controller_port = free_port(), free_port()
        settings = folder / "server.properties"
        settings.write_text("\n".join(_settings(folder, port, controller_port)))
        cluster_id = urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
        command = ["java", "kafka.tools.StorageTool", "format", "--standalone", f"--cluster-id={cluster_id}", "-c"]
        environment = os.environ | {"CLASSPATH": self._class_path}
        done = subprocess.run([*command, str(settings)], env=environment, capture_output=True, text=True)
        if done.returncode:
            raise Failed(f"Kafka cannot format its folder: {' '.join((done.stdout + done.stderr).split())}")

    def start(self, folder: Path) -> BrokerProcess:
        """Start the node that `format` prepared."""
        settings = folder / "server.properties"
        port = int(settings.read_text().partition(f"PLAINTEXT://{HOST}:")[2].partition(",")[0])
        command = ["java", *JVM_OPTIONS, "kafka.Kafka", str(settings)]
        return BrokerProcess.start(command, port, folder, CLASSPATH=self._class_path)


def _settings(folder: Path, port: int, controller_port: int) -> list[str]:
    return [
        "process.roles=broker,controller",
        "node.id=1",
        f"listeners=PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller_port}",
        "controller.listener.names=CONTROLLER",
        f"controller.quorum.bootstrap.servers={HOST}:{controller_port}",
        f"log.dirs={folder / DATA_NAME}",
        "offsets.topic.replication.factor=1",
        "transaction.state.log.replication.factor=1",
        "transaction.state.log.min.isr=1",
        "share.coordinator.state.topic.replication.factor=1",
        "share.coordinator.state.topic.min.isr=1",
        "group.initial.rebalance.delay.ms=0",
        DELETE_AT_ONCE,
        "log.initial.task.delay.ms=500",  # else the first half minute deletes nothing
    ]
