"""Dependencies are resolved as Maven does it, from a repository that lies in a folder."""

from pathlib import Path

import pytest

from bench.jars import Artifact, Dependency, fetch, repository_url

ROOT = Dependency(Artifact("org.example", "root"), "1")


class Repository:
    """A Maven repository on disk."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.url = folder.as_uri()

    def add(self, name: str, version: str, body: str = "", *, archive: bool = True) -> None:
        """Publish one project of the group org.example with the given elements in its POM."""
        place = self._folder / "org/example" / name / version
        place.mkdir(parents=True)
        (place / f"{name}-{version}.pom").write_text(
            '<project xmlns="urn:example:pom"><groupId>org.example</groupId>'
            f"<artifactId>{name}</artifactId><version>{version}</version>{body}</project>"
        )
        if archive:
            (place / f"{name}-{version}.jar").write_bytes(f"{name} {version}".encode())


def needs(*elements: str) -> str:
    return f"<dependencies>{''.join(elements)}</dependencies>"


def on(name: str, version: str = "", more: str = "") -> str:
    versioned = f"<version>{version}</version>" if version else ""
    return f"<dependency><groupId>org.example</groupId><artifactId>{name}</artifactId>{versioned}{more}</dependency>"


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repository")


def fetched(repository: Repository, tmp_path: Path) -> list[str]:
    return sorted(path.name for path in fetch([ROOT], tmp_path / "out", url=repository.url))


def test_the_version_nearest_to_the_root_wins(repository: Repository, tmp_path: Path) -> None:
    repository.add("root", "1", needs(on("far", "1"), on("shared", "1")))
    repository.add("far", "1", needs(on("shared", "2")))
    repository.add("shared", "1")
    assert fetched(repository, tmp_path) == ["far-1.jar", "root-1.jar", "shared-1.jar"]
    assert (tmp_path / "out" / "shared-1.jar").read_bytes() == b"shared 1"


@pytest.mark.parametrize(
    "more",
    ["<scope>test</scope>", "<scope>provided</scope>", "<optional>true</optional>", "<classifier>x</classifier>"],
)
def test_what_is_not_needed_at_run_time_stays_out(repository: Repository, tmp_path: Path, more: str) -> None:
    repository.add("root", "1", needs(on("unneeded", "1", more), on("needed", "1", "<scope>runtime</scope>")))
    repository.add("needed", "1")
    assert fetched(repository, tmp_path) == ["needed-1.jar", "root-1.jar"]


def test_an_exclusion_holds_for_the_whole_branch(repository: Repository, tmp_path: Path) -> None:
    exclusion = "<exclusions><exclusion><groupId>*</groupId><artifactId>leaf</artifactId></exclusion></exclusions>"
    repository.add("root", "1", needs(on("branch", "1", exclusion)))
    repository.add("branch", "1", needs(on("twig", "1")))
    repository.add("twig", "1", needs(on("leaf", "1")))
    assert fetched(repository, tmp_path) == ["branch-1.jar", "root-1.jar", "twig-1.jar"]


def test_versions_come_from_properties_parents_and_imported_lists(repository: Repository, tmp_path: Path) -> None:
    parent = "<parent><groupId>org.example</groupId><artifactId>parent</artifactId><version>7</version></parent>"
    imported = on("list", "1", "<type>pom</type><scope>import</scope>")
    repository.add("root", "1", parent + needs(on("plain", "${plain.version}"), on("managed"), on("listed")))
    repository.add(
        "parent",
        "7",
        "<properties><plain.version>${inner}</plain.version><inner>3</inner></properties>"
        f"<dependencyManagement>{needs(on('managed', '${project.version}'), imported)}</dependencyManagement>",
        archive=False,
    )
    repository.add(
        "list", "1", f"<dependencyManagement>{needs(on('listed', '5'))}</dependencyManagement>", archive=False
    )
    repository.add("plain", "3")
    repository.add("managed", "7")
    repository.add("listed", "5")
    assert fetched(repository, tmp_path) == ["listed-5.jar", "managed-7.jar", "plain-3.jar", "root-1.jar"]


def test_a_file_that_is_missing_is_an_error_and_leaves_nothing_half_done(
    repository: Repository, tmp_path: Path
) -> None:
    repository.add("root", "1", archive=False)
    with pytest.raises(OSError, match=r"root-1\.jar"):
        fetched(repository, tmp_path)
    assert not list((tmp_path / "out").glob("*.jar*"))


def test_what_was_fetched_before_is_not_fetched_again(repository: Repository, tmp_path: Path) -> None:
    repository.add("root", "1")
    fetched(repository, tmp_path)
    (tmp_path / "out" / "root-1.jar").write_bytes(b"kept")
    fetched(repository, tmp_path)
    assert (tmp_path / "out" / "root-1.jar").read_bytes() == b"kept"


def test_the_environment_names_the_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MVN_BASE", "file:///elsewhere")
    assert repository_url() == "file:///elsewhere"
