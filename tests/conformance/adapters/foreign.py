"""Clients in other languages: each is a program that takes one call per line of JSON and answers with one line.

The program's answer holds `result`, or `refused` with Kafka's error code, or `failed` with a sentence. Bytes travel in
base64. A program that does not answer in time is ended; the next call starts it again.
"""

import json
import re
import select
import subprocess
from abc import abstractmethod
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from bench.peer import VERSION as KAFKA_VERSION
from tests.conformance.adapters import (
    REQUEST_BYTES_MAX,
    WAIT_SECONDS_MAX,
    Administrator,
    Joins,
    Member,
    Message,
    Placed,
    Protocol,
    Refused,
    Stored,
    Transacts,
    WriteOptions,
    Writer,
)
from tests.conformance.foreign import build

ANSWER_SECONDS_MAX: Final = 2 * WAIT_SECONDS_MAX
"""Longer than any program waits by itself, so that it can say what it waited for."""


class ForeignClient(Administrator, Joins, Transacts):
    """A client behind a program of its own."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self._process: subprocess.Popen[bytes] | None = None

    @staticmethod
    @abstractmethod
    def command() -> list[str]:
        """Build the program if need be, and give the command that starts it."""

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def write(self, topic: str, messages: Sequence[Message], options: WriteOptions) -> list[Placed]:
        placed = self.call(
            "produce",
            topic=topic,
            messages=[
                {
                    "value": _text(message.value),
                    "key": _text(message.key),
                    "headers": [{"name": name, "value": _text(value)} for name, value in message.headers],
                    "timestamp_ms": message.timestamp_ms,
                    "partition": message.partition,
                }
                for message in messages
            ],
            compression=options.compression,
            acks=-1 if options.acks == "all" else options.acks,
            idempotent=options.idempotent,
            request_bytes_max=REQUEST_BYTES_MAX,
        )
        return [Placed(**place) for place in placed]

    def consume(self, topic: str, partition: int, *, count: int, offset: int = 0) -> list[Stored]:
        records = self.call("consume", topic=topic, partition=partition, count=count, offset=offset)
        return [
            Stored(
                partition=record["partition"],
                offset=record["offset"],
                timestamp_ms=record["timestamp_ms"],
                key=_bytes(record["key"]),
                value=_bytes(record["value"]),
                headers=tuple((header["name"], _bytes(header["value"])) for header in record["headers"]),
            )
            for record in records
        ]

    def offset_for_time(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        found: int | None = self.call("offset_for_time", topic=topic, partition=partition, timestamp_ms=timestamp_ms)
        return found

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        start, end = self.call("bounds", topic=topic, partition=partition)
        return start, end

    def partition_count(self, topic: str) -> int:
        return int(self.call("partition_count", topic=topic))

    def create_topic(
        self, topic: str, *, partitions: int = 1, replicas: int = 1, configs: Mapping[str, str] | None = None
    ) -> None:
        self.call("create_topic", topic=topic, partitions=partitions, replicas=replicas, configs=dict(configs or {}))

    def delete_topic(self, topic: str) -> None:
        self.call("delete_topic", topic=topic)

    def topics(self) -> set[str]:
        return set(self.call("topics"))

    def create_partitions(self, topic: str, total: int) -> None:
        self.call("create_partitions", topic=topic, total=total)

    def delete_records(self, topic: str, partition: int, before: int) -> int:
        return int(self.call("delete_records", topic=topic, partition=partition, before=before))

    def configs(self, topic: str) -> dict[str, str | None]:
        return dict(self.call("configs", topic=topic))

    def alter_config(self, topic: str, name: str, value: str) -> None:
        self.call("alter_config", topic=topic, name=name, value=value)

    def join(self, topic: str, group: str, protocol: Protocol) -> Member:
        return _Member(self, self.call("join", topic=topic, group=group, protocol=protocol))

    def transactional(self, transactional_id: str) -> Writer:
        return _Writer(self, self.call("transactional", transactional_id=transactional_id))

    def copy(self, topic: str, output: str, *, group: str, transactional_id: str, count: int, commits: bool) -> None:
        self.call(
            "copy",
            topic=topic,
            output=output,
            group=group,
            transactional_id=transactional_id,
            count=count,
            commits=commits,
            protocol="classic",
        )

    def call(self, name: str, /, **parameters: object) -> Any:
        """Ask the program, and give what it answers; raise Refused."""
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps({"call": name, **parameters}).encode() + b"\n")
        process.stdin.flush()
        # One answer is under way at a time, so nothing of it can already lie in our own buffer.
        if not select.select([process.stdout], [], [], ANSWER_SECONDS_MAX)[0]:
            self.close()
            raise TimeoutError(f"{self.name} did not answer {name}")
        line = process.stdout.readline()
        if not line:
            self.close()
            raise RuntimeError(f"the program of {self.name} ended during {name}")
        answer = json.loads(line)
        if answer.get("failed"):
            raise RuntimeError(answer["failed"])
        if answer.get("refused"):
            raise Refused(answer["refused"], answer["message"])
        return answer["result"]

    def _running(self) -> "subprocess.Popen[bytes]":
        if self._process is None:
            command = [*self.command(), self.bootstrap]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        return self._process


class _Member(Member):
    def __init__(self, client: ForeignClient, number: int) -> None:
        self._client = client
        self._number = number

    def poll(self) -> list[Placed]:
        return [Placed(**place) for place in self._client.call("poll", member=self._number)]

    def commit(self) -> None:
        self._client.call("commit", member=self._number)

    def leave(self) -> None:
        self._client.call("leave", member=self._number)


class _Writer(Writer):
    def __init__(self, client: ForeignClient, number: int) -> None:
        self._client = client
        self._number = number

    def begin(self) -> None:
        self._client.call("begin", writer=self._number)

    def write(self, topic: str, value: bytes) -> None:
        self._client.call("write", writer=self._number, topic=topic, value=_text(value))

    def end(self, *, commits: bool) -> None:
        self._client.call("end", writer=self._number, commits=commits)


class KafkaJs(ForeignClient):
    name = "KafkaJS"
    writes_null_headers = False

    @staticmethod
    def version() -> str:
        driver = Path(build.kafkajs()[-1])
        installed = json.loads((driver.parent / "node_modules" / "kafkajs" / "package.json").read_text())
        return str(installed["version"])

    @staticmethod
    def command() -> list[str]:
        return build.kafkajs()


class JavaClient(ForeignClient):
    name = "Java client"

    @staticmethod
    def version() -> str:
        build.java()
        return KAFKA_VERSION

    @staticmethod
    def command() -> list[str]:
        return build.java()


class FranzGo(ForeignClient):
    name = "franz-go"

    @staticmethod
    def version() -> str:
        build.franz_go()
        required = re.search(r"twmb/franz-go v(\S+)", (build.SOURCES / "franz_go" / "go.mod").read_text())
        assert required is not None
        return required[1]

    @staticmethod
    def command() -> list[str]:
        return build.franz_go()


def _text(value: bytes | None) -> str | None:
    return None if value is None else b64encode(value).decode()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else b64decode(text)
