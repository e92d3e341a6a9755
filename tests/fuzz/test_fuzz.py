"""The corpus, replayed; and that the fuzzers notice what they look for."""

import tracemalloc
from random import Random
from typing import Final

import pytest

from tests.fuzz import corpus, targets
from tests.fuzz.codec import CodecReport, fuzz_codec, try_input
from tests.fuzz.mutation import mutate
from tests.fuzz.seeds import seeds_of

MEMORY_BYTES_MAX: Final = 64 * 1024 * 1024


@pytest.mark.parametrize("target", targets.TARGETS)
def test_the_corpus_is_refused_or_read_within_bounds(target: str) -> None:
    kept = corpus.load(target)
    assert kept
    tracemalloc.start()
    try:
        for data in kept.values():
            tracemalloc.reset_peak()
            targets.outcome(target, data)
            assert tracemalloc.get_traced_memory()[1] < MEMORY_BYTES_MAX, data.hex()
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("target", targets.TARGETS)
def test_valid_inputs_are_not_refused(target: str) -> None:
    random = Random(1)
    for data in random.sample(seeds_of(target, random), 10):
        assert targets.outcome(target, data) in {"a request", "frames", "records", "bytes"}


def test_mutation_follows_its_seed() -> None:
    data = bytes(range(100))
    assert mutate(data, Random(7), b"other") == mutate(data, Random(7), b"other")
    assert len({mutate(data, Random(seed), b"other") for seed in range(100)}) > 90


def test_inputs_too_long_to_keep_are_begun_from_once(monkeypatch: pytest.MonkeyPatch) -> None:
    report = CodecReport()
    monkeypatch.setitem(targets.TARGETS, "folded", lambda _data: "said for the first time")
    long = bytes(corpus.INPUT_BYTES_MAX + 1)
    assert [try_input("folded", long, {}, report) for _ in range(3)] == [True, False, False]


def test_a_crash_is_noticed(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    def broken(data: bytes) -> str:
        return str(data[3])  # an IndexError where the input is short

    monkeypatch.setitem(targets.TARGETS, "folded", broken)
    monkeypatch.setattr(corpus, "FOLDER", tmp_path)
    report = fuzz_codec(0, seed=1, frames=1)
    assert [crash.partition(":")[0] for crash in report.crashes] == ["folded"]
    assert any(what.startswith("CRASH IndexError") for what in corpus.load("folded"))
