"""The changelog: fragments by kind, under their version, in front of what was released before."""

from pathlib import Path

import pytest

from tests.support import changelog as under_test
from tests.support.changelog import HEAD, changelog, fragments, main


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(under_test, "ROOT", tmp_path)
    folder = tmp_path / "changelog.d"
    folder.mkdir()
    (folder / "README.md").write_text("One file per change")
    (folder / "a.fixed.md").write_text("No record\nis lost.\n")
    (folder / "b.added.md").write_text("A broker.\n")
    return folder


def test_fragments_stand_under_unreleased_and_stay(folder: Path) -> None:
    for _ in range(2):
        main()
        text = (folder.parent / "CHANGELOG.md").read_text()
        assert text == HEAD + "\n## Unreleased\n\n### Added\n\n- A broker.\n\n### Fixed\n\n- No record is lost.\n"
    assert len(fragments(folder)) == 2


def test_a_version_takes_the_fragments(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    main()
    main("0.1.0")
    assert fragments(folder) == {}
    (folder / "c.changed.md").write_text("Faster.")
    main()
    text = (folder.parent / "CHANGELOG.md").read_text()
    newest, released = (line for line in text.splitlines() if line.startswith("## "))
    assert newest == "## Unreleased"
    assert released.startswith("## 0.1.0 (2")
    assert text.index("- Faster.") < text.index("- A broker.")
    assert changelog(text, {}) == text.replace("## Unreleased\n\n### Changed\n\n- Faster.\n\n", "")


def test_a_file_that_is_no_fragment_is_refused(folder: Path) -> None:
    (folder / "d.improved.md").write_text("Better.")
    with pytest.raises(ValueError, match=r"d\.improved\.md is no fragment"):
        fragments(folder)
