"""What a probe is given and what it may answer: the shared nouns of the benchmark.

A contender is a broker that can be started; a node is one of its processes. A line of the table names a probe,
which measures one node once and gives a value for each of the line's rows that it has one for.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from bench import machine

if TYPE_CHECKING:
    from bench.workshop import Workshop


class NotRun(Exception):
    """Something that the measurement needs is missing on this machine; the sentence says what."""


class Failed(Exception):
    """A broker or a client did not do what the measurement needs; the sentence says what it did."""


class Server(Protocol):
    """Something that can be connected to: a node, or what stands in front of one."""

    @property
    def host(self) -> str: ...

    @property
    def port(self) -> int: ...


class Node(Server, Protocol):
    """A broker process that answers."""

    @property
    def pid(self) -> int: ...

    @property
    def data(self) -> Path:
        """Return the folder that holds a folder per partition."""
        ...

    def stop(self) -> None:
        """End the process as its operator would, and wait until it is gone."""
        ...

    def kill(self) -> None:
        """End the process with SIGKILL."""
        ...


class Contender(Protocol):
    """A broker to measure."""

    @property
    def name(self) -> str: ...

    @property
    def command(self) -> str:
        """Return how its nodes are started, for the reader of the report."""
        ...

    @property
    def warm_seconds(self) -> float:
        """Return how much mixed load it needs before it runs as fast as it can."""
        ...

    @property
    def durable_topic(self) -> Mapping[str, str]:
        """Return the topic settings under which every acknowledged record is on the medium."""
        ...

    def prepare(self) -> str:
        """Fetch what is missing and give the version, or raise NotRun."""
        ...

    def format(self, folder: Path) -> None:
        """Make a new data folder ready for `start`, where the broker wants that done separately."""
        ...

    def start(self, folder: Path) -> Node:
        """Start a node on this data folder and return at its first Metadata answer."""
        ...


@dataclass(frozen=True, slots=True)
class Trial:
    """One run of one probe."""

    contender: Contender
    shared_node: Node | None
    folder: Path
    """A folder of this trial's own, removed after it: for probes that start nodes of their own."""
    seconds: float
    workshop: "Workshop"

    @property
    def node(self) -> Node:
        """Return the contender's warm node, which all lines share except those that start their own."""
        assert self.shared_node is not None
        return self.shared_node


class Stopwatch:
    """Wall time and broker CPU time from its construction to `stop`."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._cpu_seconds = cpu_seconds(node)
        self._started = machine.now()
        self.seconds = 0.0
        self.cpu_seconds = 0.0

    def stop(self) -> None:
        self.seconds = machine.now() - self._started
        self.cpu_seconds = cpu_seconds(self._node) - self._cpu_seconds


def cpu_seconds(node: Node) -> float:
    """Read the CPU time that the node and its children have used since they were started."""
    return machine.usage([node.pid]).ours


Values = Mapping[str, float]
Probe = Callable[[Trial], Values]


class Better(Enum):
    """Which way a row is read."""

    HIGHER = "higher"
    LOWER = "lower"
    NEITHER = "neither"
    """No ratio: the machine's own number, measured beside each broker, or one that drowns in a broker's noise."""


@dataclass(frozen=True, slots=True)
class Row:
    """One number of a line. With neither aim it is for information."""

    name: str
    unit: str
    better: Better
    reach: float | None = None
    """What riverlog's number divided by Kafka's is to reach."""
    own_reach: float | None = None
    """What riverlog's number itself is to reach."""


@dataclass(frozen=True, slots=True)
class Line:
    """One measurement: what it is called, what it means, how it is done, and the numbers that come of it."""

    name: str
    about: str
    probe: Probe
    rows: tuple[Row, ...]
    on_shared_node: bool = True
    ours_only: bool = False
    """Whether it is about riverlog's node alone, or compares two ways to it between which others give no choice."""
    runs_max: int | None = None
    """How often it is measured at most, where a run takes a broker minutes."""

    def runs(self, planned: int) -> int:
        return planned if self.runs_max is None else min(planned, self.runs_max)
