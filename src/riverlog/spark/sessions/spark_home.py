"""The home of a Spark on this machine: the installed PySpark without its second copy, which lies in a zip archive.

Spark lets its Python processes import PySpark from SPARK_HOME/python/lib/pyspark.zip where that is there. Nothing in it
is compiled, so each process compiles it again: 0.7 s of CPU, and a streaming query starts one. Beside it lies the same
package as it was installed, compiled. A home of links to all but `python` leaves the workers that one.
"""

import hashlib
import os
import shutil
import site
import sys
import tempfile
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from riverlog.spark.sessions.caches import caches

_LEFT_OUT: Final = ("python", "work")
"""The archive; and what executors write, which is not to lie in the installed package."""


@contextmanager
def light_home(environment: MutableMapping[str, str]) -> Iterator[None]:
    """Set such a home for a Spark that is started within this block, unless one is set or it cannot be made.

    What is started later is told nothing: it may be another Spark.
    """
    home = None if "SPARK_HOME" in environment else _home(environment)
    if home is None:
        yield
        return
    environment["SPARK_HOME"] = str(home)
    try:
        yield
    finally:
        environment.pop("SPARK_HOME", None)


def _home(environment: MutableMapping[str, str]) -> Path | None:
    """Return the folder of links, made where it is missing; None where workers would not find the package."""
    import pyspark

    package = Path(pyspark.__file__).parent
    workers_python = environment.get("PYSPARK_PYTHON", sys.executable)
    places = [*site.getsitepackages(), site.getusersitepackages()]
    if workers_python != sys.executable or str(package.parent) not in places:
        return None
    linked = [each for each in sorted(package.iterdir()) if each.name not in _LEFT_OUT]
    name = f"spark-{hashlib.sha256(repr(linked).encode()).hexdigest()[:16]}"
    for folder in caches(environment):
        with suppress(OSError):
            return _made(folder / name, linked)
    return None


def _made(home: Path, linked: list[Path]) -> Path:
    """Create the links somewhere else first: several sessions may start at once, and none may find half of them."""
    if home.is_dir():
        return home
    unfinished = Path(tempfile.mkdtemp(dir=home.parent, prefix=f"{home.name}-"))
    for each in linked:
        (unfinished / each.name).symlink_to(each)
    try:
        os.rename(unfinished, home)
    except OSError:  # another was faster
        shutil.rmtree(unfinished)
        if not home.is_dir():
            raise
    return home
