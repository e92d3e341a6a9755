"""Fuzzes the codec, the framing and the records in this process, for a time."""

import os
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

from tests.fuzz import corpus
from tests.fuzz.mutation import mutate
from tests.fuzz.seeds import seeds_of
from tests.fuzz.targets import TARGETS, outcome

TURN: Final = 2_000
"""Inputs for one target before the next has its turn."""
_PROGRESS_FRAMES: Final = 1_000_000


@dataclass
class CodecReport:
    """What was tried and what came of it."""

    inputs: int = 0
    seconds: float = 0.0
    crashes: list[str] = field(default_factory=list)
    outcomes: set[tuple[str, str]] = field(default_factory=set)
    """Targets, and what they said: also of inputs that are too long to be kept."""
    memory_growth_bytes: int = 0

    def __str__(self) -> str:
        return (
            f"codec: {self.inputs:,} frames, {self.seconds:.0f} s, {len(self.crashes)} crashes; "
            f"{len(self.outcomes)} different outcomes, {self.memory_growth_bytes / 1e6:.0f} MB more memory"
        )


def fuzz_codec(seconds: float, seed: int, *, frames: int = 0, keep: bool = False) -> CodecReport:
    """Try inputs until the time is over and there were as many as wanted; with `keep`, renew the corpus."""
    random = Random(seed)
    report = CodecReport()
    kept = {target: corpus.load(target) for target in TARGETS}
    report.outcomes.update((target, what) for target, inputs in kept.items() for what in inputs)
    pools = {target: [*seeds_of(target, random), *kept[target].values()] for target in TARGETS}
    began = time.monotonic()
    memory = _memory_bytes()
    while time.monotonic() - began < seconds or report.inputs < frames:
        for target, pool in pools.items():
            for _ in range(TURN):
                data = mutate(random.choice(pool), random, random.choice(pool))
                if try_input(target, data, kept[target], report):
                    pool.append(data)
            report.inputs += TURN
        if report.inputs // _PROGRESS_FRAMES > (report.inputs - TURN * len(pools)) // _PROGRESS_FRAMES:
            report.seconds, report.memory_growth_bytes = time.monotonic() - began, _memory_bytes() - memory
            print(f"{report}, so far", flush=True)
    report.seconds = time.monotonic() - began
    report.memory_growth_bytes = _memory_bytes() - memory
    if keep or report.crashes:
        for target, inputs in kept.items():
            corpus.save(target, inputs)
    return report


def try_input(target: str, data: bytes, kept: dict[str, bytes], report: CodecReport) -> bool:
    """Try one input; tell whether what came of it is new."""
    try:
        what = corpus.kind_of(outcome(target, data))
    except Exception as crash:
        what = f"CRASH {type(crash).__name__}: {corpus.kind_of(str(crash))}"
        if (target, what) not in report.outcomes:
            report.crashes.append(f"{target}: {data.hex()}\n{traceback.format_exc()}")
    known = kept.get(what)
    short = len(data) <= corpus.INPUT_BYTES_MAX or what.startswith("CRASH")
    if short and (known is None or len(data) < len(known)):
        kept[what] = data
    new = (target, what) not in report.outcomes
    report.outcomes.add((target, what))
    return new


def _memory_bytes() -> int:
    """Return what is resident now; the most that ever was would be that of one large input, or of the parent."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
