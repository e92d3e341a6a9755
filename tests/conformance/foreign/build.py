"""Make the programs that drive foreign clients: fetch what they need, compile them, and give the command to start each.

Everything lands in the cache, in a folder named by the sources' hash; a second run finds it there. Where a toolchain is
missing or a registry cannot be reached, `CannotBuild` says so in one sentence.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from bench.cache import cache_folder as bench_cache_folder
from bench.peer import VERSION as KAFKA_VERSION
from bench.peer import Kafka
from bench.trial import NotRun
from tests.conformance.cache import cache_folder

SOURCES: Final = Path(__file__).parent
BUILD_SECONDS_MAX: Final = 600
COMPLAINT_CHARACTERS_MAX: Final = 300
JAVA: Final = ("java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m", "-Dlog4j2.level=OFF")
"""How short-lived programs are started: compiled quickly rather than well, and without logging."""


class CannotBuild(OSError):
    """Something that the program needs is missing; the sentence says what."""


def kafkajs() -> list[str]:
    """Install KafkaJS and its codecs, and give the command."""

    def install(folder: Path) -> None:
        shutil.copytree(SOURCES / "kafkajs", folder, dirs_exist_ok=True)
        _run(["npm", "install", "--silent", "--no-audit", "--no-fund", "--no-package-lock"], folder)

    _need("node", "npm")
    return ["node", str(_built("kafkajs", install) / "driver.js")]


def java() -> list[str]:
    """Compile the Java program, and give the command."""

    def compile_driver(folder: Path) -> None:
        _run(["javac", "-cp", class_path(), "-d", str(folder), "Driver.java"], SOURCES / "java")

    _need("java", "javac")
    folder = _built("java", compile_driver, salt=KAFKA_VERSION)
    return [*JAVA, "-cp", f"{folder}:{class_path()}", "Driver"]


def streams() -> list[str]:
    """Compile the program on Kafka Streams, and give the command."""

    def compile_program(folder: Path) -> None:
        _run(["javac", "-cp", class_path(), "-d", str(folder), "Totals.java"], SOURCES / "streams")

    _need("java", "javac")
    folder = _built("streams", compile_program, salt=KAFKA_VERSION)
    return [*JAVA, "-cp", f"{folder}:{class_path()}", "Totals"]


def franz_go() -> list[str]:
    """Compile the Go program, and give the command."""

    def compile_driver(folder: Path) -> None:
        _run(["go", "build", "-o", str(folder / "driver"), "."], SOURCES / "franz_go")

    _need("go")
    return [str(_built("franz_go", compile_driver) / "driver")]


def class_path() -> str:
    """Return Apache Kafka's archives, fetching them if the benchmark has not done so."""
    try:
        Kafka(bench_cache_folder()).prepare()
    except NotRun as error:
        raise CannotBuild(str(error)) from error
    return f"{bench_cache_folder() / f'kafka-{KAFKA_VERSION}'}/*"


def _need(*programs: str) -> None:
    if missing := [program for program in programs if shutil.which(program) is None]:
        raise CannotBuild(f"no {' and no '.join(missing)} on this machine")


def _built(name: str, build: Callable[[Path], None], *, salt: str = "") -> Path:
    """Return the folder that `build` filled, now or in an earlier run with the same sources."""
    digest = hashlib.sha256(salt.encode())
    for path in sorted(path for path in (SOURCES / name).rglob("*") if path.is_file()):
        digest.update(path.read_bytes())
    folder = cache_folder() / f"{name}-{digest.hexdigest()[:16]}"
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
            unfinished = Path(temporary) / name
            unfinished.mkdir()
            build(unfinished)
            unfinished.rename(folder)  # a folder under its own name is whole
    return folder


def _run(command: Sequence[str], folder: Path) -> None:
    try:
        done = subprocess.run(
            command, cwd=folder, env=os.environ, capture_output=True, text=True, timeout=BUILD_SECONDS_MAX
        )
    except subprocess.TimeoutExpired as error:
        raise CannotBuild(f"{command[0]} did not end within {BUILD_SECONDS_MAX} s") from error
    if done.returncode:
        words = " ".join((done.stdout + done.stderr).split())
        raise CannotBuild(f"{command[0]} failed: {words[-COMPLAINT_CHARACTERS_MAX:]}")
