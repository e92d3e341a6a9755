"""When rows become batches, and by which encoder."""

import sys

import pyarrow as pa
import pytest

from riverlog.arrow.decoding import decoder
from riverlog.arrow.encoding.compiled_encoder import CompiledEncoder
from riverlog.arrow.encoding.encoder import Encoder
from riverlog.arrow.encoding.plain_encoder import PlainEncoder
from riverlog.arrow.encoding.rows import EncodingRules, TopicIndex
from riverlog.records.record import read_batch

FRAME = pa.record_batch({"value": [b"%d" % number for number in range(10)]})


def encoder(**settings: int) -> Encoder:
    return Encoder(EncodingRules(topic="t"), TopicIndex(lambda _: 1), **settings)


def test_rows_are_gathered_until_they_are_enough() -> None:
    few = encoder(gathered_bytes_max=3 * FRAME.nbytes)
    assert few.add(FRAME) == few.add(FRAME) == []
    (batch,) = few.add(FRAME)
    assert [record.value for record in read_batch(batch.content)] == FRAME["value"].to_pylist() * 3
    assert few.add(FRAME.slice(0, 0)) == []
    assert few.finish() == []


def test_the_kernel_is_loaded_behind_what_was_encoded_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "riverlog.arrow.encoding.kernel")
    many = encoder(kernel_rows_min=15)
    assert many.add(FRAME) == []
    assert isinstance(many._rows, PlainEncoder)
    (before,) = many.add(FRAME)
    assert isinstance(many._rows, CompiledEncoder)
    (behind,) = many.finish()
    assert (before.count, behind.count) == (10, 10)


def test_many_small_tasks_are_worth_the_kernel_as_one_large_one_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "riverlog.arrow.encoding.kernel")
    first = encoder(kernel_rows_min=15)
    first.add(FRAME)
    second = encoder(kernel_rows_min=15, rows_before=first.row_count)
    second.add(FRAME)
    assert isinstance(first._rows, PlainEncoder)
    assert isinstance(second._rows, CompiledEncoder)


def test_without_numba_nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoder, "has", lambda _module: False)
    plain = encoder(kernel_rows_min=1)
    plain.add(FRAME)
    assert isinstance(plain._rows, PlainEncoder)
