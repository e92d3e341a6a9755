"""A group of members in processes of their own, and somebody who writes what they read."""

import itertools
import json
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from confluent_kafka import Producer

from tests.support.waiting import until

TOPIC: Final = "orders"
PARTITIONS: Final = 12
SECONDS_MAX: Final = 30.0
_ROOT: Final = Path(__file__).parents[2]
_WRITE_SECONDS: Final = 0.01


class Member:
    """One member's process, and what it has told."""

    def __init__(self, out: Path, arguments: list[str]) -> None:
        self._out = out
        with out.open("wb") as file, out.with_suffix(".err").open("wb") as errors:
            command = [sys.executable, "-m", "tests.e2e.member", *arguments]
            self._process = subprocess.Popen(command, stdout=file, stderr=errors, cwd=_ROOT)

    def events(self) -> list[tuple[str, Any]]:
        """Return all that was told so far; the last line of one that was killed may be half a line."""
        lines = self._out.read_text().splitlines(keepends=True)
        return [tuple(json.loads(line)) for line in lines if line.endswith("\n")]

    @property
    def partitions(self) -> list[int]:
        """Return what the member has."""
        held: set[int] = set()
        for what, about in self.events():
            if what == "assigned":
                held |= set(about)
            elif what in ("revoked", "lost"):
                held -= set(about)
        return sorted(held)

    def told(self, kind: str) -> list[Any]:
        """Return all that it told of one kind, in one list."""
        return [each for what, about in self.events() if what == kind for each in about]

    def kill(self) -> None:
        """End it as kill -9 does."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """Leave in good order."""
        self._process.send_signal(signal.SIGTERM)
        assert self._process.wait(SECONDS_MAX) == 0, self._out.with_suffix(".err").read_text()


class Crew:
    """The members of one group, and those who were."""

    def __init__(self, folder: Path, bootstrap: str, *, client: str, protocol: str, group: str = "billing") -> None:
        self.group = group
        self.members: list[Member] = []
        self._folder = folder
        self._arguments = [client, "--bootstrap", bootstrap, "--group", group, "--protocol", protocol, "--topic", TOPIC]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for member in self.members:
            member.kill()

    def start(self) -> Member:
        """Start one more."""
        out = self._folder / f"{self.group}-{len(self.members)}.out"
        self.members.append(Member(out, self._arguments))
        return self.members[-1]

    def read(self) -> set[tuple[int, int]]:
        """Return what any of them has read, as (partition, offset)."""
        return {(index, offset) for member in self.members for index, offset in member.told("read")}

    def committed(self) -> dict[int, int]:
        """Return the highest offset whose commit was acknowledged, by partition."""
        highest: dict[int, int] = {}
        for member in self.members:
            for index, offset in member.told("committed"):
                highest[index] = max(offset, highest.get(index, 0))
        return highest

    def until_shared(self, *members: Member) -> None:
        """Wait until these have all partitions, and none has two more than another."""

        def shared() -> bool:
            having = [member.partitions for member in members]
            sizes = [len(each) for each in having]
            return sorted(itertools.chain(*having)) == list(range(PARTITIONS)) and max(sizes) - min(sizes) <= 1

        until(shared, lambda: f"members have {[member.partitions for member in members]}")

    def until_read(self, ends: dict[int, int]) -> None:
        """Wait until every record was read by somebody."""
        wanted = {(index, offset) for index, end in ends.items() for offset in range(end)}
        until(lambda: wanted <= self.read(), lambda: f"not read: {sorted(wanted - self.read())[:20]}")


class Load:
    """Somebody who writes to all partitions in turn for as long as the block lasts, or until `stop`."""

    def __init__(self, bootstrap: str) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 1,
                "reconnect.backoff.max.ms": 200,
                "log_level": 0,
            }
        )
        self._ends: Counter[int] = Counter()
        self._on = True
        self._thread = threading.Thread(target=self._write)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> dict[int, int]:
        """Stop, wait for the last acknowledgement, and give where each partition ends."""
        self._on = False
        self._thread.join()
        assert self._producer.flush(SECONDS_MAX) == 0
        return dict(self._ends)

    def _write(self) -> None:
        for number in itertools.count():
            if not self._on:
                return
            self._producer.produce(TOPIC, b"%d" % number, partition=number % PARTITIONS, on_delivery=self._delivered)
            self._producer.poll(_WRITE_SECONDS)

    def _delivered(self, error: object, message: Any) -> None:
        assert error is None, error
        self._ends[message.partition()] = max(self._ends[message.partition()], message.offset() + 1)
