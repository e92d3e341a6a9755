"""Fuzzes the codec, the framing and the records in this process, for a time."""

import resource
import time
import traceback
from dataclasses import dataclass, field
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
    outcomes: int = 0
    memory_growth_bytes: int = 0

    def __str__(self) -> str:
        return (
            f"codec: {self.inputs:,} frames, {self.seconds:.0f} s, {len(self.crashes)} crashes; "
            f"{self.outcomes} different outcomes, {self.memory_growth_bytes / 1e6:.0f} MB more memory"
        )


def fuzz_codec(seconds: float, seed: int, *, frames: int = 0, keep: bool = False) -> CodecReport:
    """Try inputs until the time is over and there were as many as wanted; with `keep`, renew the corpus."""
    random = Random(seed)
    report = CodecReport()
    kept = {target: corpus.load(target) for target in TARGETS}
    pools = {target: [*seeds_of(target, random), *kept[target].values()] for target in TARGETS}
    began = time.monotonic()
    memory = _memory_bytes()
    while time.monotonic() - began < seconds or report.inputs < frames:
        for target, pool in pools.items():
            for _ in range(TURN):
                data = mutate(random.choice(pool), random, random.choice(pool))
                _try(target, data, kept[target], pool, report)
            report.inputs += TURN
        if report.inputs // _PROGRESS_FRAMES > (report.inputs - TURN * len(pools)) // _PROGRESS_FRAMES:
            print(f"codec: {report.inputs:,} frames, {len(report.crashes)} crashes so far", flush=True)
    report.seconds = time.monotonic() - began
    report.outcomes = sum(map(len, kept.values()))
    report.memory_growth_bytes = _memory_bytes() - memory
    if keep or report.crashes:
        for target, inputs in kept.items():
            corpus.save(target, inputs)
    return report


def _try(target: str, data: bytes, kept: dict[str, bytes], pool: list[bytes], report: CodecReport) -> None:
    try:
        what = corpus.kind_of(outcome(target, data))
    except Exception as crash:
        what = f"CRASH {type(crash).__name__}: {corpus.kind_of(str(crash))}"
        if what not in kept:
            report.crashes.append(f"{target}: {data.hex()}\n{traceback.format_exc()}")
    known = kept.get(what)
    if known is None or len(data) < len(known):
        if known is None:
            pool.append(data)
        if len(data) <= corpus.INPUT_BYTES_MAX or what.startswith("CRASH"):
            kept[what] = data


def _memory_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
