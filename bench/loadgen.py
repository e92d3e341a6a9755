"""Run the load generator: loadgen.c, compiled on first use into the cache."""

import hashlib
import json
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.cache import cache_folder
from bench.trial import Failed, NotRun, Server

SOURCE: Final = Path(__file__).with_name("loadgen.c")
GRACE_SECONDS: Final = 60
"""How long the generator may take beyond its own time, above all to collect answers that are late."""


@dataclass(frozen=True, slots=True)
class Load:
    """What is sent: a greeting once per connection, then one request over and over."""

    greeting: Sequence[bytes]
    request: bytes
    error_position: int
    """Where in the answer, behind its length, the error code stands."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """What came back in the given time."""

    requests: int
    seconds: float
    p50_us: float
    p90_us: float
    p99_us: float
    p999_us: float
    max_us: float


def replay(
    load: Load, node: Server, *, connections: int = 1, in_flight: int = 1, seconds: float, requests_max: int = 0
) -> Replayed:
    """Replay the load against a node; an error code in any answer fails the run."""
    numbers = [node.port, connections, in_flight, seconds, requests_max, load.error_position]
    done = subprocess.run(
        [str(compiled()), node.host, *map(str, numbers)],
        input=b"".join([*load.greeting, load.request]),
        capture_output=True,
        timeout=seconds + GRACE_SECONDS,
    )
    if done.returncode:
        raise Failed(done.stderr.decode().strip() or f"loadgen ended with code {done.returncode}")
    return Replayed(**json.loads(done.stdout))


def compiled() -> Path:
    """Return the generator's path, compiling it unless this very source was compiled before."""
    digest = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]
    target = cache_folder() / f"loadgen-{digest}"
    if not target.exists():
        compiler = shutil.which("cc")
        if compiler is None:
            raise NotRun("no C compiler is installed")
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_suffix(".part")
        command = [compiler, "-O2", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-o", str(part), str(SOURCE)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise NotRun(f"the load generator does not compile here: {' '.join(done.stderr.split())}")
        part.rename(target)
    return target
