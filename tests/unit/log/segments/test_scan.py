"""Walking a file of batches."""

import pytest

from riverlog.log.segments import scan as module
from riverlog.log.segments.scan import scan_batches, scan_headers
from riverlog.records.batch import checksum
from tests.support.batches import batch_of
from tests.support.disk import MemoryDisk, MemoryFile

SIZES = [1, 300, 5, 2_000, 70, 1, 900]


@pytest.fixture
def file() -> MemoryFile:
    file = MemoryDisk().open("/file", create=True)
    file.write(0, [batch_of([bytes(size)]) for size in SIZES])
    return file


@pytest.mark.parametrize("chunk_bytes", [61, 100, 1_000, 1 << 20])
def test_every_batch_is_found_whatever_the_chunks(
    file: MemoryFile, chunk_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SCAN_CHUNK_BYTES", chunk_bytes)
    headers = list(scan_headers(file, 0, file.size(), chunk_bytes=chunk_bytes))
    batches = list(scan_batches(file, 0, file.size()))
    assert headers == [(position, header) for position, header, _ in batches]
    assert len(headers) == len(SIZES)
    assert all(checksum(batch) == header.crc for _, header, batch in batches)
    assert list(scan_headers(file, headers[2][0], file.size())) == headers[2:]


def test_both_stop_where_the_bytes_are_no_whole_batch(file: MemoryFile) -> None:
    end = file.size()
    for cut in (1, 60, 900, 960):
        assert len(list(scan_headers(file, 0, end - cut))) == len(SIZES) - 1
        assert len(list(scan_batches(file, 0, end - cut))) == len(SIZES) - 1
    file.write(end, [bytes(500)])
    assert len(list(scan_headers(file, 0, end + 500))) == len(SIZES)
    assert len(list(scan_batches(file, 0, end + 500))) == len(SIZES)
