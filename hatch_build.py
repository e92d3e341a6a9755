"""What a registry shows of the project: its addresses, and the README with links that lead somewhere from there.

Both derive from one setting, `repository` in `[tool.riverlog]` of pyproject.toml: where the source can be read. As long
as it is empty nothing is published, the page has no addresses, and links to files of the repository become plain words.
"""

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from posixpath import normpath
from typing import Any, Final

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK: Final = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
_FENCE: Final = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


class RegistryPage(MetadataHookInterface):
    """Adds the addresses and the long description to the metadata of a distribution."""

    def update(self, metadata: dict[str, Any]) -> None:
        repository = repository_of(Path(self.root))
        page = absolute_links((Path(self.root) / "README.md").read_text(), repository)
        metadata["readme"] = {"content-type": "text/markdown", "text": page}
        metadata["urls"] = addresses(repository)


def repository_of(root: Path) -> str:
    """Return where the source can be read; empty where it is not published yet."""
    project = tomllib.loads((root / "pyproject.toml").read_text())
    return str(project["tool"]["riverlog"]["repository"]).rstrip("/")


def addresses(repository: str) -> dict[str, str]:
    """Return the addresses that a registry lists."""
    if not repository:
        return {}
    return {
        "Documentation": f"{repository}/blob/HEAD/docs/index.md",
        "Source": repository,
        "Changelog": f"{repository}/blob/HEAD/CHANGELOG.md",
        "Issues": f"{repository}/issues",
    }


def absolute_links(text: str, repository: str, folder: str = "") -> str:
    """Return Markdown of a folder of the repository with links that work from anywhere."""

    def absolute(path: str, anchor: str) -> str | None:
        if not repository:
            return None
        if not path:
            return f"{repository}{anchor}"
        return f"{repository}/blob/HEAD/{normpath(f'{folder}/{path}').lstrip('/')}{anchor}"

    return replaced_links(text, absolute)


def replaced_links(text: str, address: Callable[[str, str], str | None]) -> str:
    """Return Markdown whose relative links, given as path and anchor, have other addresses, or are plain words."""

    def link(found: re.Match[str]) -> str:
        image, words, target = found.groups()
        if "://" in target:
            return found[0]
        path, hash_sign, anchor = target.partition("#")
        there = address(path, f"{hash_sign}{anchor}")
        return words if there is None else f"{image}[{words}]({there})"

    parts = _FENCE.split(text)
    return "".join(part if index % 2 else _LINK.sub(link, part) for index, part in enumerate(parts))
