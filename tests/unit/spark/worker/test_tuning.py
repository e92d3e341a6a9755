"""A worker is spared what does not change: archives are not read anew, and what is loaded is not walked through."""

import gc
import importlib
import subprocess
import sys
import zipimport
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest

from riverlog.spark.worker.tuning import Loaded, leave_archives_alone, tune


@pytest.fixture
def spark_like(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Import a package out of one of two archives in a folder, with a program's own archive elsewhere."""
    places = [
        archive(tmp_path / "lib" / "package.zip", "river_zip/__init__.py", "river_zip/later.py"),
        archive(tmp_path / "lib" / "beside.zip", "river_beside.py"),
        archive(tmp_path / "files" / "program.zip", "river_program.py"),
    ]
    monkeypatch.setattr(sys, "path", [*places, *sys.path])
    importlib.import_module("river_zip")
    importlib.import_module("river_program")
    yield places
    for name in [name for name in sys.modules if name.startswith("river_")]:
        del sys.modules[name]


def archive(path: Path, *modules: str) -> str:
    path.parent.mkdir(exist_ok=True)
    with ZipFile(path, "w") as written:
        for module in modules:
            written.writestr(module, "")
    return str(path)


def finders() -> set[str]:
    return {finder.archive for finder in sys.path_importer_cache.values() if isinstance(finder, zipimport.zipimporter)}


def test_only_archives_of_programs_are_read_again(spark_like: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    directory = zipimport._read_directory  # type: ignore[attr-defined]
    monkeypatch.setattr(zipimport, "_read_directory", lambda place: (read.append(place), directory(place))[1])
    assert finders() >= set(spark_like)
    leave_archives_alone(sys.modules["river_zip"])
    importlib.invalidate_caches()
    assert set(read) & set(spark_like) == {spark_like[2]}


def test_what_is_in_them_can_be_imported_afterwards(spark_like: list[str]) -> None:
    leave_archives_alone(sys.modules["river_zip"])
    for name in ("river_zip.later", "river_beside"):
        assert importlib.import_module(name).__name__ == name


def test_a_package_that_is_a_folder_changes_nothing(spark_like: list[str]) -> None:
    leave_archives_alone(pytest)
    assert finders() >= set(spark_like)


def test_what_is_loaded_is_frozen_once_and_again_when_more_is(spark_like: list[str]) -> None:
    loaded = Loaded()
    try:
        loaded.freeze()
        before = gc.get_freeze_count()
        assert before > 1_000
        kept = [[number] for number in range(1_000)]
        loaded.freeze()
        assert gc.get_freeze_count() < before + len(kept)  # what is frozen may go, and does where Spark runs here
        importlib.import_module("river_zip.later")
        loaded.freeze()
        assert gc.get_freeze_count() >= before + len(kept)
        tune()
    finally:
        gc.unfreeze()


def test_pieces_of_megabytes_are_used_again() -> None:
    program = """
import resource
from riverlog.spark.worker.tuning import keep_memory

def pages() -> int:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        pieces = [b"x" * 3_000_000 for _ in range(4)]
        del pieces
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

told = keep_memory()
pages()
print(told, pages())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    told, pages = done.stdout.split()
    assert told == "False" or int(pages) < 1_000, pages  # without it each piece costs 700


DAEMON = """
import sys, types
from importlib.machinery import ModuleSpec
from riverlog.spark.worker.tuning import end_quietly
daemon = types.ModuleType("__main__")
daemon.__spec__ = ModuleSpec({name!r}, None)
def worker(sock, authenticated):
    if authenticated:
        raise BrokenPipeError
    return 0
daemon.worker = worker
end_quietly(daemon)
end_quietly(daemon)
assert daemon.worker(None, False) == 0
daemon.worker(None, True)
"""


@pytest.mark.parametrize(("name", "ending"), [("pyspark.daemon", 0), ("another", 1)])
def test_a_worker_to_whom_nobody_listens_ends_without_a_word(name: str, ending: int) -> None:
    done = subprocess.run([sys.executable, "-c", DAEMON.format(name=name)], capture_output=True, text=True, check=False)
    assert done.returncode == ending
    assert ("BrokenPipeError" in done.stderr) == bool(ending)
