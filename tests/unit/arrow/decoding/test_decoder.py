"""Which decoder is used; that both read the same is shown by the property tests."""

import sys

import pytest

from riverlog.arrow.decoding import compiled_decoder, decoder, plain_decoder
from riverlog.arrow.decoding.decoder import KERNEL_ROWS_MIN, decoder_for


def test_few_rows_are_not_worth_loading_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "riverlog.arrow.decoding.kernel")
    assert decoder_for(KERNEL_ROWS_MIN - 1) is plain_decoder.record_batch


def test_a_kernel_that_is_loaded_is_used() -> None:
    assert decoder_for(1) is compiled_decoder.record_batch
    assert decoder_for(KERNEL_ROWS_MIN) is compiled_decoder.record_batch


def test_without_numba_everything_is_decoded_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoder, "has", lambda _module: False)
    assert decoder_for(10**9) is plain_decoder.record_batch
