"""kcat: librdkafka on the command line. It reads and writes but changes no topic, and it cannot choose a time."""

import re
import subprocess
from collections.abc import Sequence
from itertools import groupby
from typing import Final

from tests.conformance.adapters import (
    REQUEST_BYTES_MAX,
    WAIT_SECONDS_MAX,
    Client,
    Message,
    Placed,
    Refused,
    Stored,
    WriteOptions,
)

KEY_END: Final = b"\t"
RECORD_END: Final = b"\x1e"
"""What stands between records on kcat's standard input; no test sends a record that holds it."""

_CODES: Final = {
    "Unknown topic or partition": 3,
    "Offset out of range": 1,
    "Message size too large": 10,
    "Invalid topic": 17,
}
_PLACED: Final = re.compile(rb"delivered to partition (\d+) \(offset (-?\d+)\)")


class Kcat(Client):
    name = "kcat"
    stamps = False
    hashes_like_java = False

    @staticmethod
    def version() -> str:
        said = subprocess.run(["kcat", "-V"], check=True, capture_output=True, text=True).stdout
        return re.sub(r".*Version (\S+) .*librdkafka (\S+) .*", r"\1 (librdkafka \2)", " ".join(said.split()))

    def write(self, topic: str, messages: Sequence[Message], options: WriteOptions) -> list[Placed]:
        settings = {
            "acks": options.acks,
            "compression.type": options.compression,
            "enable.idempotence": str(options.idempotent).lower(),
            "message.max.bytes": REQUEST_BYTES_MAX,
            "partitioner": "murmur2_random" if options.like_java else "consistent_random",
        }
        placed: list[Placed] = []
        # One run takes one set of headers and one partition, and means "empty is null" for all its records.
        for (headers, partition, nulls), group in groupby(messages, _run_key):
            arguments = ["-P", "-t", topic, "-K", KEY_END.decode(), "-D", RECORD_END.decode(), "-vvv"]
            arguments += ["-Z"] if nulls else []
            arguments += [] if partition is None else ["-p", str(partition)]
            for name, value in headers:
                arguments += ["-H", name if value is None else f"{name}={value.decode()}"]
            for name, setting in settings.items():
                arguments += ["-X", f"{name}={setting}"]
            said = self._run(arguments, b"".join(map(_line, group)))
            placed += [
                Placed(int(where), -1 if options.acks == 0 else int(offset)) for where, offset in _PLACED.findall(said)
            ]
        return placed

    def consume(self, topic: str, partition: int, *, count: int, offset: int = 0) -> list[Stored]:
        arguments = ["-C", "-q", "-t", topic, "-p", str(partition), "-o", str(offset), "-c", str(count)]
        arguments += ["-X", "fetch.wait.max.ms=50", "-X", "auto.offset.reset=error"]
        read = self._run([*arguments, "-f", r"%p %o %T %K %S %h\n%k%s\n"])
        records = []
        while read:
            line, _, read = read.partition(b"\n")
            *numbers, headers = line.split(b" ", 5)
            where, at, timestamp_ms, key_size, value_size = map(int, numbers)
            key, read = _take(read, key_size)
            value, read = _take(read, value_size)
            records.append(Stored(where, at, timestamp_ms, key, value, _headers(headers)))
            read = read.removeprefix(b"\n")
        return records

    def offset_for_time(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        found = self._query(topic, partition, timestamp_ms)
        return found if found >= 0 else None

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        return self._query(topic, partition, -2), self._query(topic, partition, -1)

    def partition_count(self, topic: str) -> int:
        return self._run(["-L", "-t", topic]).count(b"    partition ")

    def _query(self, topic: str, partition: int, timestamp_ms: int) -> int:
        answer = self._run(["-Q", "-t", f"{topic}:{partition}:{timestamp_ms}"])
        return int(answer.rpartition(b"offset ")[2])

    def _run(self, arguments: list[str], given: bytes = b"") -> bytes:
        """Run kcat to its end and give all that it printed; raise what it complained about."""
        run = subprocess.run(
            ["kcat", "-b", self.bootstrap, *arguments], input=given, capture_output=True, timeout=WAIT_SECONDS_MAX
        )
        complaint = run.stderr.decode(errors="replace")
        if run.returncode or "Delivery failed" in complaint:
            raise _refusal(complaint)
        return run.stdout + (run.stderr if "-vvv" in arguments else b"")


def _run_key(message: Message) -> tuple[tuple[tuple[str, bytes | None], ...], int | None, bool]:
    assert message.timestamp_ms is None, "kcat cannot choose a record's time"
    return message.headers, message.partition, message.value is None


def _line(message: Message) -> bytes:
    key = b"" if message.key is None else message.key + KEY_END
    return key + (message.value or b"") + RECORD_END


def _take(read: bytes, size: int) -> tuple[bytes | None, bytes]:
    return (None, read) if size < 0 else (read[:size], read[size:])


def _headers(text: bytes) -> tuple[tuple[str, bytes | None], ...]:
    pairs = [pair.partition(b"=") for pair in text.split(b",") if pair]
    return tuple((name.decode(), None if value == b"NULL" else value) for name, _, value in pairs)


def _refusal(complaint: str) -> Exception:
    for words, code in _CODES.items():
        if words in complaint:
            return Refused(code, complaint)
    return RuntimeError(complaint)
