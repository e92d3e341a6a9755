"""What the machine can do is measured, and nothing of it stays."""

from pathlib import Path

from bench.limits import disk_bytes_per_second, loopback_bytes_per_second


def test_the_disk_has_a_rate_and_its_file_is_gone(tmp_path: Path) -> None:
    assert disk_bytes_per_second(tmp_path, chunk_bytes=4096, chunks_per_flush=2, seconds=0.001) > 0
    assert list(tmp_path.iterdir()) == []


def test_loopback_has_a_rate() -> None:
    assert loopback_bytes_per_second(0.001) > 0
