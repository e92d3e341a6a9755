"""Scenarios: text files that read like a transcript. A line with `> ` is a command, the lines under it are what the
machine said to it; everything else is for the reader and stays as it is."""

from collections.abc import Callable, Iterator
from pathlib import Path

PROMPT = "> "
INDENT = "  "


def played(text: str, play: Callable[[str], list[str]]) -> str:
    """Return the transcript again, with what the machine says now."""
    lines: list[str] = []
    for line in _without_answers(text):
        lines.append(line)
        if line.startswith(PROMPT):
            lines += [INDENT + answer for answer in play(line.removeprefix(PROMPT))]
    return "\n".join(lines) + "\n"


def check(path: Path, play: Callable[[str], list[str]], *, rewrite: bool) -> None:
    """Compare a scenario with what the machine says, or write that down instead."""
    text = path.read_text()
    now = played(text, play)
    if rewrite:
        path.write_text(now)
    assert now == text, f"{path.name} has changed; if that is meant, run pytest with --rewrite and read the diff"


def _without_answers(text: str) -> Iterator[str]:
    answered = False
    for line in text.splitlines():
        if answered and line.startswith(INDENT):
            continue
        answered = line.startswith(PROMPT)
        yield line
