"""Fetch Java archives and all that they need from a Maven repository.

Resolution is Maven's: the nearest version wins, and optional, test and provided dependencies stay out. Eight
files travel at a time, which makes minutes of what Maven itself does one by one. The repository's address is the
one that the installed Maven was built with, or the environment variable MVN_BASE.
"""

import functools
import os
import re
import shutil
import threading
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple
from xml.etree import ElementTree

from bench.trial import NotRun

DOWNLOADS_AT_ONCE: Final = 8
ATTEMPTS_MAX: Final = 4
TIMEOUT_SECONDS: Final = 120
PROPERTY_DEPTH_MAX: Final = 5
"""How often a property may stand for another one; a POM that nests deeper keeps its placeholder and is left out."""


class Artifact(NamedTuple):
    """What a dependency names: its group and its own name."""

    group: str
    name: str


class Dependency(NamedTuple):
    """One edge of the graph: whom, which version, and what must not be pulled in through it."""

    artifact: Artifact
    version: str
    excluded: frozenset[Artifact] = frozenset()


@dataclass(frozen=True, slots=True)
class Pom:
    """A project's description with its parents folded in."""

    properties: dict[str, str]
    managed: dict[Artifact, str]
    dependencies: tuple[Dependency, ...]


def repository_url() -> str:
    """Find the address of the repository, or raise NotRun where nothing on this machine tells it."""
    if "MVN_BASE" in os.environ:
        return os.environ["MVN_BASE"]
    maven = shutil.which("mvn")
    homes = [Path(maven).resolve().parent.parent] if maven else []
    for home in [*homes, Path("/usr/share/maven")]:
        for archive in sorted(home.glob("lib/maven-model-builder*.jar")):
            with zipfile.ZipFile(archive) as jar:
                super_pom = jar.read("org/apache/maven/model/pom-4.0.0.xml").decode()
            if address := re.search(r"<url>([^<]+)</url>", super_pom):
                return address[1]
    raise NotRun("no Maven is installed to read the repository's address from; install it or set MVN_BASE")


def fetch(roots: Iterable[Dependency], folder: Path, *, url: str | None = None) -> list[Path]:
    """Put the archives of `roots` and of all that they need into `folder`; those already there stay."""
    repository = Repository(url or repository_url(), folder)
    with ThreadPoolExecutor(DOWNLOADS_AT_ONCE) as pool:
        chosen = closure(roots, lambda front: list(pool.map(repository.pom, front)))
        return list(pool.map(repository.archive, chosen))


def closure(roots: Iterable[Dependency], poms: Callable[[list[Dependency]], list[Pom]]) -> list[Dependency]:
    """Walk the graph level by level, so that the version nearest to a root is met first and wins."""
    front = list(roots)
    chosen = {root.artifact: root for root in front}
    while front:
        following = []
        for parent, pom in zip(front, poms(front), strict=True):
            for child in pom.dependencies:
                if child.artifact in chosen or not child.version or _is_excluded(child.artifact, parent.excluded):
                    continue
                chosen[child.artifact] = child._replace(excluded=parent.excluded | child.excluded)
                following.append(chosen[child.artifact])
        front = following
    return list(chosen.values())


class Repository:
    """A Maven repository, and the folder that keeps what came from it."""

    def __init__(self, url: str, folder: Path) -> None:
        self._url = url.rstrip("/")
        self._folder = folder
        self._read = functools.cache(self._read_pom)

    def pom(self, dependency: Dependency) -> Pom:
        """Read a project's description, its parents and imported versions folded in."""
        return self._read(dependency.artifact, dependency.version)

    def archive(self, dependency: Dependency) -> Path:
        """Fetch the Java archive itself."""
        return self._download(dependency.artifact, dependency.version, "jar", self._folder)

    def _read_pom(self, artifact: Artifact, version: str) -> Pom:
        path = self._download(artifact, version, "pom", self._folder / "poms" / artifact.group)
        root = ElementTree.fromstring(re.sub(rb'xmlns="[^"]*"', b"", path.read_bytes(), count=1))
        parent = root.find("parent")
        inherited = Pom({}, {}, ())
        if parent is not None:
            inherited = self._read(_artifact(parent, str.strip), (parent.findtext("version") or "").strip())
        own_version = root.findtext("version") or version
        properties = inherited.properties | {
            "project.groupId": root.findtext("groupId") or artifact.group,
            "project.version": own_version,
            "project.parent.version": (parent.findtext("version") or "") if parent is not None else own_version,
        }
        properties |= {element.tag: (element.text or "").strip() for element in root.findall("properties/*")}

        def resolve(text: str) -> str:
            for _ in range(PROPERTY_DEPTH_MAX):
                text = re.sub(r"\$\{([^}]+)\}", lambda match: properties.get(match[1], match[0]), text)
            return text.strip()

        managed = dict(inherited.managed)
        for node in root.findall("dependencyManagement/dependencies/dependency"):
            key, chosen = _artifact(node, resolve), resolve(node.findtext("version") or "")
            if resolve(node.findtext("scope") or "") == "import":
                managed = self._read(key, chosen).managed | managed
            elif chosen:
                managed[key] = chosen
        own = tuple(
            Dependency(
                _artifact(node, resolve),
                resolve(node.findtext("version") or "") or managed.get(_artifact(node, resolve), ""),
                frozenset(_artifact(excluded, resolve) for excluded in node.findall("exclusions/exclusion")),
            )
            for node in root.findall("dependencies/dependency")
            if _is_needed_at_run_time(node, resolve)
        )
        return Pom(properties, managed, inherited.dependencies + own)

    def _download(self, artifact: Artifact, version: str, extension: str, folder: Path) -> Path:
        target = folder / f"{artifact.name}-{version}.{extension}"
        if target.exists():
            return target
        place = f"{artifact.group.replace('.', '/')}/{artifact.name}/{version}"
        body = _get(f"{self._url}/{place}/{target.name}")
        folder.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f"{target.name}.part-{threading.get_ident()}")  # a parent may be wanted twice at once
        part.write_bytes(body)
        part.rename(target)  # a file under its own name is whole
        return target


def _get(url: str) -> bytes:
    """Read a file of the repository; a network that stumbles is asked again, a missing file is not."""
    for attempt in range(1, ATTEMPTS_MAX + 1):
        try:
            with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as reply:
                return bytes(reply.read())
        except urllib.error.HTTPError:
            raise
        except OSError:
            if attempt == ATTEMPTS_MAX:
                raise
    raise AssertionError("the loop above returns or raises")


def _artifact(node: ElementTree.Element, resolve: Callable[[str], str]) -> Artifact:
    return Artifact(resolve(node.findtext("groupId") or ""), resolve(node.findtext("artifactId") or ""))


def _is_needed_at_run_time(node: ElementTree.Element, resolve: Callable[[str], str]) -> bool:
    return (
        resolve(node.findtext("scope") or "compile") in ("compile", "runtime")
        and resolve(node.findtext("type") or "jar") == "jar"
        and not node.findtext("classifier")
        and resolve(node.findtext("optional") or "") != "true"
    )


def _is_excluded(artifact: Artifact, excluded: frozenset[Artifact]) -> bool:
    return any(group in (artifact.group, "*") and name in (artifact.name, "*") for group, name in excluded)
