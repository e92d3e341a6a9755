"""The pages of the site: each is in its list, and no link of any leads nowhere, published or not."""

import posixpath
import re
import tomllib
from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.support.site import ROOT, pages

LINK: Final = re.compile(r"\]\(([^)\s]+)\)")
FENCE: Final = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
REPOSITORY: Final = "https://example.org/riverlog"


def listed(nav: list[Any]) -> Iterator[str]:
    for entry in nav:
        for value in entry.values():
            yield from [value] if isinstance(value, str) else listed(value)


def slug(heading: str) -> str:
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading.lower()).strip())


def anchors(text: str) -> set[str]:
    return {slug(heading) for heading in re.findall(r"^#+ (.*)$", FENCE.sub("", text), re.MULTILINE)}


def test_every_page_is_in_the_list() -> None:
    nav = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]["nav"]
    decisions = {page for page in pages() if page.startswith("adr/0")}
    assert sorted(listed(nav)) == sorted(set(pages()) - decisions)
    assert all(f"]({page.removeprefix('adr/')})" in pages()["adr/index.md"] for page in decisions)


@pytest.mark.parametrize("repository", ["", REPOSITORY])
def test_links_lead_to_pages_and_headings_of_the_site(repository: str) -> None:
    site = pages(repository=repository)
    for page, text in site.items():
        for target in LINK.findall(FENCE.sub("", text)):
            if "://" in target:
                if target.startswith(repository or "//"):
                    file = target.removeprefix(f"{REPOSITORY}/blob/HEAD/").partition("#")[0]
                    assert (ROOT / file).exists(), f"{page}: {target}"
                continue
            path, _, anchor = target.partition("#")
            there = posixpath.normpath(f"{posixpath.dirname(page)}/{path}".lstrip("/")) if path else page
            if there.endswith(".svg"):
                assert (ROOT / "docs" / there).is_file(), f"{page}: {target}"
                continue
            assert there in site, f"{page}: {target}"
            assert not anchor or anchor in anchors(site[there]), f"{page}: {target}"
