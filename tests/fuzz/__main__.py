"""Fuzz for a time and say what came of it: `python -m tests.fuzz --seconds 60`. Exit code 1 if anything crashed.

A million frames for the codec alone: `python -m tests.fuzz --only codec --seconds 0 --frames 1000000`.
"""

import argparse
import secrets
import sys
import tempfile
from pathlib import Path

from tests.fuzz.codec import fuzz_codec
from tests.fuzz.door import fuzz_door
from tests.fuzz.handlers import fuzz_handlers


def main() -> int:
    parser = argparse.ArgumentParser(prog="make fuzz")
    parser.add_argument("--seconds", type=float, default=60, help="for how long, in all")
    parser.add_argument("--seed", type=int, default=None, help="repeat the inputs of an earlier run")
    parser.add_argument("--frames", type=int, default=0, help="go on until each part has had so many")
    parser.add_argument("--only", choices=("codec", "handlers", "socket"), help="one part only, for all the time")
    parser.add_argument("--keep", action="store_true", help="renew the corpus with what was met")
    given = parser.parse_args()
    seed = secrets.randbits(32) if given.seed is None else given.seed
    seconds = given.seconds if given.only else given.seconds / 3
    print(f"seed {seed}", flush=True)
    wrong: list[str] = []
    if given.only in (None, "codec"):
        codec = fuzz_codec(seconds, seed, frames=given.frames, keep=given.keep)
        print(codec, flush=True)
        wrong += codec.crashes
    if given.only in (None, "handlers"):
        handlers = fuzz_handlers(seconds, seed, requests=given.frames if given.only else 0)
        print(handlers, flush=True)
        wrong += handlers.wrong
    if given.only in (None, "socket"):
        with tempfile.TemporaryDirectory(prefix="riverlog-fuzz-") as folder:
            door = fuzz_door(seconds, seed, Path(folder), frames=given.frames)
        print(door, flush=True)
        wrong += door.wrong
    for crash in wrong:
        print(crash)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
