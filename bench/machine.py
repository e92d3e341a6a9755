"""The machine under the measurement: what it is, what a process tree has used, and what everybody else used.

All of it is read from /proc. CPU time has a resolution of 10 ms, so runs below a second say little about it.
Kernel threads count as nobody's: most of what they do here is writing back what the broker wrote.
"""

import os
import platform
import sysconfig
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

TICKS_PER_SECOND: Final = os.sysconf("SC_CLK_TCK")
KERNEL_THREADS_PARENT: Final = 2
PROC: Final = Path("/proc")


now = time.monotonic


class Process(NamedTuple):
    """One line of the process table: CPU seconds of its own and of its children that have ended."""

    pid: int
    parent: int
    own_seconds: float
    ended_children_seconds: float


class Usage(NamedTuple):
    """CPU seconds since the machine started: of the trees asked about, of all others, and taken by the host."""

    ours: float
    others: float
    stolen: float

    def since(self, earlier: "Usage") -> "Usage":
        """Return what was used between two readings."""
        return Usage(*(now - then for now, then in zip(self, earlier, strict=True)))


def parse_process(stat: str) -> Process:
    """Read /proc/PID/stat; the name in the middle may hold anything, so fields count from its last bracket."""
    pid = int(stat.split(" ", 1)[0])
    fields = stat.rpartition(")")[2].split()
    user, system, children_user, children_system = (int(field) / TICKS_PER_SECOND for field in fields[11:15])
    return Process(pid, int(fields[1]), user + system, children_user + children_system)


def processes() -> list[Process]:
    """Read the whole process table; processes that end meanwhile are left out."""
    table = []
    for folder in PROC.iterdir():
        if not folder.name.isdigit():
            continue
        try:
            table.append(parse_process((folder / "stat").read_text()))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return table


def tree(table: Iterable[Process], roots: Iterable[int]) -> list[Process]:
    """Pick the processes that are, or descend from, one of `roots`."""
    children: dict[int, list[Process]] = {}
    found = []
    wanted = set(roots)
    for process in table:
        children.setdefault(process.parent, []).append(process)
        if process.pid in wanted:
            found.append(process)
    for process in found:
        found.extend(child for child in children.get(process.pid, ()) if child.pid not in wanted)
    return found


def children(parent: int) -> set[int]:
    """Name the processes that this one has started and that are still there."""
    return {process.pid for process in processes() if process.parent == parent}


def usage(roots: Iterable[int]) -> Usage:
    """Read what the trees under `roots` have used so far, and what everybody else has."""
    table = processes()
    ours = tree(table, roots)
    own = {process.pid for process in ours}
    others = [
        process
        for process in table
        if process.pid not in own and KERNEL_THREADS_PARENT not in (process.pid, process.parent)
    ]
    stolen = int((PROC / "stat").read_text().split("\n", 1)[0].split()[8]) / TICKS_PER_SECOND
    return Usage(_seconds(ours), _seconds(others), stolen)


def resident_bytes(root: int) -> int:
    """Add up the resident memory of a process and all that descend from it."""
    total = 0
    for process in tree(processes(), [root]):
        status = (PROC / str(process.pid) / "status").read_text()
        total += sum(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmRSS:"))
    return total


@dataclass(frozen=True, slots=True)
class Machine:
    """What a reader needs to know to compare numbers."""

    cores: int
    processor: str
    memory_gb: float
    kernel: str
    python: str

    def __str__(self) -> str:
        return (
            f"{self.cores} cores ({self.processor}), {self.memory_gb:.0f} GB, Linux {self.kernel}, Python {self.python}"
        )


def describe() -> Machine:
    """Look at the machine this runs on."""
    names = [line.partition(":")[2].strip() for line in _lines("cpuinfo") if line.startswith("model name")]
    kilobytes = [int(line.split()[1]) for line in _lines("meminfo") if line.startswith("MemTotal:")]
    return Machine(
        cores=os.cpu_count() or 1,
        processor=names[0] if names else platform.machine(),
        memory_gb=sum(kilobytes) / 1024**2,
        kernel=platform.release(),
        python=platform.python_version() + ("" if _is_optimized() else " (built without optimizations)"),
    )


def _is_optimized() -> bool:
    """Return whether the interpreter was built with profile-guided optimization, which numbers depend on."""
    return "--enable-optimizations" in (sysconfig.get_config_var("CONFIG_ARGS") or "")


def _lines(name: str) -> list[str]:
    return (PROC / name).read_text().splitlines()


def _seconds(table: Iterable[Process]) -> float:
    return sum(process.own_seconds + process.ended_children_seconds for process in table)
