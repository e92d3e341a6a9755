"""What is written down about the indexes of aborted transactions."""

import pytest

from riverlog.log.checkpoint import BadCheckpoint
from riverlog.log.producers.aborted_checkpoint import UNKNOWN, decode_sums, encode_sums, sum_of
from riverlog.model.ids import Offset

SUMS = {Offset(0): sum_of(b"an index"), Offset(1200): sum_of(b"")}


def test_what_is_written_is_read() -> None:
    assert encode_sums(SUMS).startswith(b"0\n2\n0 8 ")
    assert decode_sums(encode_sums(SUMS), "there") == SUMS


@pytest.mark.parametrize("content", [b"", encode_sums(SUMS)[:-1], encode_sums(SUMS).replace(b"1200", b"1300")])
def test_a_damaged_file_is_not_believed(content: bytes) -> None:
    with pytest.raises(BadCheckpoint):
        decode_sums(content, "there")


def test_an_index_may_grow_and_change_in_no_other_way() -> None:
    known = sum_of(b"an index")
    assert known.begins(b"an index")
    assert known.begins(b"an index, and more")
    assert not known.begins(b"an inde")
    assert not known.begins(b"another index")
    assert not UNKNOWN.begins(b"")
