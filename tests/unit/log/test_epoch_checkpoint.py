"""The file of leader epochs."""

import pytest

from riverlog.log.checkpoint import BadCheckpoint
from riverlog.log.epoch_checkpoint import decode_epochs, encode_epochs
from riverlog.model.epochs import Epochs
from riverlog.model.ids import LeaderEpoch, Offset


def test_the_file_has_kafkas_form() -> None:
    history = Epochs([(LeaderEpoch(1), Offset(0)), (LeaderEpoch(3), Offset(10))])
    assert encode_epochs(history) == b"0\n2\n1 0\n3 10\n"
    assert decode_epochs(encode_epochs(history), "x").entries() == history.entries()


@pytest.mark.parametrize("content", [b"", b"0\n1\n1\n", b"0\n2\n3 10\n1 20\n", b"0\n2\n1 10\n3 10\n", b"0\n1\na b\n"])
def test_a_damaged_file_is_refused(content: bytes) -> None:
    with pytest.raises(BadCheckpoint):
        decode_epochs(content, "x")
