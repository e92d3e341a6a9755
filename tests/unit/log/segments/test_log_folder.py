"""The folder of a log: its files are named as Kafka names them."""

from riverlog.log.segments.log_folder import LOG_SUFFIX, LogFolder, path_of
from riverlog.log.segments.open_files import OpenFiles
from riverlog.model.ids import Offset
from tests.support.disk import MemoryDisk


def test_a_segment_is_named_by_twenty_digits() -> None:
    assert path_of("/data/orders-0", Offset(42), LOG_SUFFIX) == "/data/orders-0/00000000000000000042.log"


def test_each_log_has_a_quarantine_of_its_own() -> None:
    one, other = (LogFolder(MemoryDisk(), OpenFiles(), folder, 4096) for folder in ("/one", "/other"))
    assert one.quarantine is not other.quarantine
