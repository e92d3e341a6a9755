"""What errors of the disk mean: few of them speak of the disk."""

import errno
import pickle

import pytest

from riverlog.model.disk_errors import DiskTrouble, FlushFailed, judge, may_pass


@pytest.mark.parametrize(
    ("error", "trouble"),
    [
        (errno.EIO, DiskTrouble.FAILED),
        (errno.EROFS, DiskTrouble.FAILED),
        (errno.ESTALE, DiskTrouble.FAILED),
        (errno.ENOSPC, DiskTrouble.FULL),
        (errno.EDQUOT, DiskTrouble.FULL),
        (errno.ENOENT, DiskTrouble.MISSING),
        (errno.EMFILE, DiskTrouble.HINDERED),
        (errno.ENFILE, DiskTrouble.HINDERED),
        (errno.ENOMEM, DiskTrouble.HINDERED),
        (errno.EAGAIN, DiskTrouble.HINDERED),
        (errno.EACCES, DiskTrouble.HINDERED),
    ],
)
def test_an_error_speaks_of_the_disk_or_of_one_call(error: int, trouble: DiskTrouble) -> None:
    assert judge(OSError(error, "")) is trouble
    assert may_pass(OSError(error, "")) is (trouble in (DiskTrouble.FULL, DiskTrouble.HINDERED))
    assert judge(FlushFailed(error, "")) is DiskTrouble.FAILED


def test_a_failed_flush_comes_home_from_another_process_as_one() -> None:
    home = pickle.loads(pickle.dumps(FlushFailed(errno.EIO, "Input/output error", "/data/orders-0")))
    assert isinstance(home, FlushFailed)
    assert (home.errno, home.filename) == (errno.EIO, "/data/orders-0")
