"""The page in a registry: addresses from one setting, and no link that leads nowhere from there."""

import re
from pathlib import Path
from typing import Final

import pytest

from hatch_build import RegistryPage, absolute_links, addresses

ROOT: Final = Path(__file__).resolve().parents[2]
THERE: Final = "https://example.org/riverlog"


def test_links_of_the_repository_become_absolute() -> None:
    text = "[a](docs/a.md#b) [c](../c/d.py) ![p](p.svg) [e](#e) [f](https://f.org)\n\n```\n[g](g.md)\n```\n"
    assert absolute_links(text, THERE, "docs") == (
        f"[a]({THERE}/blob/HEAD/docs/docs/a.md#b) [c]({THERE}/blob/HEAD/c/d.py) ![p]({THERE}/blob/HEAD/docs/p.svg) "
        f"[e]({THERE}#e) [f](https://f.org)\n\n```\n[g](g.md)\n```\n"
    )


def test_without_an_address_they_are_plain_words() -> None:
    assert absolute_links("[a](docs/a.md) ([e](#e)), [f](https://f.org)", "") == "a (e), [f](https://f.org)"
    assert addresses("") == {}


@pytest.mark.parametrize("repository", ["", THERE])
def test_the_long_description_has_no_relative_links(repository: str, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(f'[tool.riverlog]\nrepository = "{repository}"\n')
    (tmp_path / "README.md").write_text((ROOT / "README.md").read_text())
    metadata: dict[str, object] = {}
    RegistryPage(str(tmp_path), {}).update(metadata)
    page = metadata["readme"]
    assert isinstance(page, dict)
    assert page["content-type"] == "text/markdown"
    links = re.findall(r"\]\(([^)\s]+)\)", page["text"])
    assert all(link.startswith("https://") for link in links)
    assert bool(links) == bool(repository)
    assert metadata["urls"] == addresses(repository)
    assert all(address.startswith(THERE) for address in addresses(repository).values())
