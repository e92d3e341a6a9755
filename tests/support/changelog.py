"""CHANGELOG.md out of the fragments in changelog.d: `python -m tests.support.changelog [VERSION]`.

Without a version the fragments stay where they are, and stand under "Unreleased". With one they become its section,
with the day, and are deleted. What was released before stays as it is.
"""

import re
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
KINDS: Final = ("added", "changed", "fixed", "removed")
FRAGMENT: Final = re.compile(rf"[a-z0-9-]+\.({'|'.join(KINDS)})\.md")
HEAD: Final = """# Changes

What users notice, by version. `make changelog` gathers what is unreleased from `changelog.d`.
"""
UNRELEASED: Final = "Unreleased"


def fragments(folder: Path) -> dict[Path, str]:
    """Return the sentence of each fragment; ValueError for a file that is none."""
    found = {}
    for path in sorted(folder.iterdir()):
        if path.name == "README.md":
            continue
        if not FRAGMENT.fullmatch(path.name):
            raise ValueError(f"{path.name} is no fragment: <subject>.<{'|'.join(KINDS)}>.md")
        found[path] = " ".join(path.read_text().split())
    return found


def section(title: str, sentences: Iterable[tuple[str, str]]) -> str:
    """Return a version with its sentences, each with its kind, by kind."""
    known = list(sentences)
    parts = [f"## {title}"]
    for kind in KINDS:
        if lines := [f"- {sentence}" for each, sentence in known if each == kind]:
            parts += [f"### {kind.capitalize()}", "\n".join(lines)]
    return "\n\n".join(parts) + "\n"


def changelog(before: str, found: Mapping[Path, str], title: str = UNRELEASED) -> str:
    """Return the whole text: the new section, and the versions that were released before."""
    versions = [
        each for each in re.split(r"^(?=## )", before, flags=re.MULTILINE)[1:] if f"## {UNRELEASED}" not in each
    ]
    kinds = ((path.name.split(".")[-2], sentence) for path, sentence in found.items())
    newest = [section(title, kinds)] if found else []
    return "\n".join([HEAD, *newest, *versions])


def main(version: str | None = None) -> None:
    """Write CHANGELOG.md; with a version, delete the fragments."""
    path = ROOT / "CHANGELOG.md"
    found = fragments(ROOT / "changelog.d")
    title = UNRELEASED if version is None else f"{version} ({datetime.now(UTC):%Y-%m-%d})"
    path.write_text(changelog(path.read_text() if path.exists() else "", found, title))
    if version is not None:
        for each in found:
            each.unlink()


if __name__ == "__main__":
    main(*sys.argv[1:])
