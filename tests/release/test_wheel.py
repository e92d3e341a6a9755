"""From a clone to the last line of the README, as a newcomer goes: `make wheel`.

What git knows is copied, a wheel is built of it and installed into a new environment, and the README is walked there
as printed: `riverlog dev` on its usual ports, then every block in order. It takes minutes, most of them for PySpark.
"""

import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.support.printed import ROOT, Walk, blocks
from tests.support.readme import EXPECTED, walk
from tests.support.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

EXTRAS: Final = "clients,java,spark"
USUAL: Final = {
    "127.0.0.1:9092": "kafka=",
    "127.0.0.1:9644": "metrics=http://",
    "127.0.0.1:9870": "checkpoints=webhdfs://",
}
"""By the address that the README prints: how it begins in the ready line."""


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy what git knows: what somebody who clones the repository has."""
    folder = tmp_path_factory.mktemp("clone")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def wheel(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(clone)])
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the commands of a new environment."""
    folder = tmp_path_factory.mktemp("environment")
    run([sys.executable, "-m", "venv", str(folder)])
    return folder / "bin"


def run(command: list[str]) -> str:
    ran = subprocess.run(command, capture_output=True, text=True, timeout=1800, check=False)
    assert ran.returncode == 0, f"{command}\n{ran.stdout}\n{ran.stderr}"
    return ran.stdout


@contextmanager
def dev(folder: Path, commands: Path) -> Iterator[dict[str, str]]:
    """Run `riverlog dev` as printed, and yield its addresses where they are not the usual ones: a port was taken."""
    out = folder / "dev.out"
    with out.open("wb") as file, (folder / "dev.log").open("wb") as log:
        node = subprocess.Popen([str(commands / "riverlog"), "dev"], cwd=folder, stdout=file, stderr=log)
    try:
        until(lambda: "riverlog ready " in out.read_text(), out.read_text)
        words = out.read_text().partition("riverlog ready ")[2].split()
        found = {
            usual: word.removeprefix(begin)
            for usual, begin in USUAL.items()
            for word in words
            if word.startswith(begin)
        }
        assert found.keys() == USUAL.keys(), words
        yield {usual: here for usual, here in found.items() if usual != here}
    finally:
        node.terminate()
        node.wait(30)


def test_a_wheel_has_what_it_needs_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"riverlog", "pyspark_riverlog"}
    assert "riverlog/py.typed" in names
    assert "riverlog/spark/sessions/log4j2.properties" in names
    assert {f"riverlog/examples/{path.name}" for path in (ROOT / "examples").glob("*.py")} <= set(names)


def test_the_readme_is_walked_as_printed(clone: Path, wheel: Path, environment: Path, tmp_path: Path) -> None:
    (install,) = (block for block in blocks("README.md", "Install") if block.language == "sh")
    assert install.text == "pip install .\n"
    Walk(clone, bin=environment, seconds_max=900).run(install)
    assert run([str(environment / "riverlog"), "version"]).startswith("riverlog ")
    assert "1000 invoices, one per order" in run([str(environment / "riverlog"), "demo"]), "Spark is not there yet"
    run([str(environment / "pip"), "install", "--quiet", "--force-reinstall", "--no-deps", str(wheel)])
    run([str(environment / "pip"), "install", "--quiet", f"{wheel}[{EXTRAS}]"])
    with dev(tmp_path, environment) as addresses:
        walker = Walk(tmp_path, addresses, environment, seconds_max=600)
        done = walk(walker, "Five minutes") | walk(walker, "Pipelines on Spark")
    assert done | {"kcat "} == set(EXPECTED)
    assert (tmp_path / "riverlog-data").is_dir()
