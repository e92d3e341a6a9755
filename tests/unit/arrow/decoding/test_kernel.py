"""The kernel is compiled with a cache where there is a place for one, and without it elsewhere."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import riverlog
from riverlog.arrow.decoding import kernel

PROGRAM = """
import riverlog.arrow.decoding.kernel as kernel
import numpy as np
assert kernel._signed(np.int64(3)) == -2
print(kernel.__file__)
"""


def test_where_nothing_can_be_written_it_is_compiled_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []

    def njit(**options: Any) -> Any:
        def compile_(function: Any) -> Any:
            asked.append(options)
            if options.get("cache"):
                raise RuntimeError("cannot cache function: no locator available")
            return function

        return compile_

    monkeypatch.setattr(kernel, "njit", njit)
    assert kernel.compiled(len) is len
    assert [options.get("cache", False) for options in asked] == [True, False]


def test_the_compiled_form_is_kept_where_the_environment_says(tmp_path: Path) -> None:
    package, cache = tmp_path / "lib" / "riverlog", tmp_path / "cache"
    shutil.copytree(Path(riverlog.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(package.parent)}
    shown = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert shown.strip() == str(package / "arrow" / "decoding" / "kernel.py")
    assert list(cache.rglob("kernel._signed*.nbi"))
    assert not list(package.rglob("*.nbi"))
