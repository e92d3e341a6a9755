"""Inputs worth keeping: one for each thing that a target says about its input, the shortest that was met.

A corpus is a text file per target, a line per input: the bytes as hexadecimal digits, and what the target made of
them, numbers left out. Crashes go to the same files, so that they are replayed by every test from then on.
"""

import re
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).with_name("corpus")
INPUT_BYTES_MAX: Final = 400
_NUMBER: Final = re.compile(r"-?\b[0-9a-fx]*\d[0-9a-fx]*\b|'[^']*'")


def load(target: str) -> dict[str, bytes]:
    """Return the kept inputs by what they lead to."""
    path = FOLDER / f"{target}.txt"
    lines = path.read_text().splitlines() if path.exists() else []
    return {what: bytes.fromhex(digits) for digits, _, what in (line.partition(" # ") for line in lines)}


def save(target: str, inputs: dict[str, bytes]) -> None:
    """Write the kept inputs, sorted."""
    FOLDER.mkdir(exist_ok=True)
    lines = [f"{data.hex()} # {what}\n" for what, data in sorted(inputs.items())]
    (FOLDER / f"{target}.txt").write_text("".join(lines))


def kind_of(outcome: str) -> str:
    """Return an outcome without what varies."""
    return _NUMBER.sub("N", outcome.partition("\n")[0].partition(" codec can't decode")[0])[:160]
