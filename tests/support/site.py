"""The pages of the documentation's site, made of docs/, the README and the changelog: `python -m tests.support.site`.

In a clone the pages link to files all over the repository. A site has only its pages, so links to others of them are
kept, those to the README and the changelog go to the pages made of these, and those to the source go to where it is
published, or become plain words.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from posixpath import normpath, relpath
from typing import Final

from hatch_build import replaced_links, repository_of
from tests.support.changelog import changelog, fragments

ROOT: Final = Path(__file__).resolve().parents[2]
PAGES: Final = ROOT / "build" / "docs"
ELSEWHERE: Final = {
    "README.md": "getting-started.md",
    "CHANGELOG.md": "changelog.md",
    "docs/adr": "adr/index.md",
}
"""By the path in the repository: the page that it is on the site."""


def pages(root: Path = ROOT, repository: str | None = None) -> dict[str, str]:
    """Return the text of each page by its path on the site."""
    known = {path.relative_to(root).as_posix(): path.read_text() for path in sorted((root / "docs").rglob("*.md"))}
    known["README.md"] = (root / "README.md").read_text().replace("# riverlog\n", "# Getting started\n", 1)
    known["CHANGELOG.md"] = changelog((root / "CHANGELOG.md").read_text(), fragments(root / "changelog.d"))
    known["docs/adr/index.md"] = _decisions(known)
    there = repository_of(root) if repository is None else repository
    return {page_of(path): replaced_links(text, _links(path, set(known), there)) for path, text in known.items()}


def page_of(path: str) -> str:
    """Return the page that a file of the repository is on the site."""
    return ELSEWHERE.get(path, path.removeprefix("docs/"))


def main() -> None:
    """Write all pages anew, and the pictures beside them."""
    shutil.rmtree(PAGES, ignore_errors=True)
    for name, text in pages().items():
        (PAGES / name).parent.mkdir(parents=True, exist_ok=True)
        (PAGES / name).write_text(text)
    for picture in sorted((ROOT / "docs").rglob("*.svg")):
        shutil.copy(picture, PAGES / picture.relative_to(ROOT / "docs"))


def _links(path: str, known: set[str], repository: str) -> Callable[[str, str], str | None]:
    here = Path(page_of(path)).parent.as_posix()

    def address(target: str, anchor: str) -> str | None:
        if not target:
            return anchor
        file = normpath(f"{Path(path).parent.as_posix()}/{target}")
        if file in known or file in ELSEWHERE or file.endswith(".svg"):
            return f"{relpath(page_of(file), here)}{anchor}"
        return f"{repository}/blob/HEAD/{file}{anchor}" if repository else None

    return address


def _decisions(known: dict[str, str]) -> str:
    """Return the list of decision records."""
    names = sorted(Path(path).name for path in known if path.startswith("docs/adr/"))
    titles = [(name, known[f"docs/adr/{name}"].splitlines()[0].removeprefix("# ")) for name in names]
    return "\n".join(["# Decisions", "", *(f"- [{title}]({name})" for name, title in titles), ""])


if __name__ == "__main__":
    main()
