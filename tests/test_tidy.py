"""The repository about itself: what a reviewer would otherwise have to look for again and again."""

import ast
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from riverlog.cli.command_table import COMMANDS, GROUPS
from riverlog.model.settings import NODE_ONLY_SETTINGS, TOPIC_SETTINGS
from tests.support import chart
from tests.support.changelog import fragments
from tests.support.documents import metrics_table

ROOT: Final = Path(__file__).resolve().parent.parent
SOURCE: Final = ROOT / "src" / "riverlog"
DOCUMENTS: Final = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])

TESTED_ELSEWHERE: Final = {
    "__main__": "two lines; every e2e test of the command line goes through the same main()",
    "broker.requests.forwarded": "a table; test_forwarder.py and test_envelope.py use what is in it",
    "broker.requests.context": "types and lookups of one line, used in the tests of every handler",
    "observe.samples": "types without behaviour; test_metrics.py and test_node_metrics.py fill and read them",
    "partitions.retry_later": "an exception without behaviour, used in the tests of whoever raises it",
    "cli.metadata_records": "test_log.py of the commands sees it in all forms",
    "controller.quorum_ports": "types without behaviour; test_quorum_of_three.py is on both sides of them",
    "groups.consumer.assignors.subscriber": "types without behaviour, used in the tests of every assignor",
    "node_world": "the ports of a node; every simulated node brings its own",
    "raft.effects": "types without behaviour; the tests of every role look at them",
    "raft.events": "types without behaviour; every test of the machine hands them over",
    "raft.exchange.log_name": "words of one line; the tests of requests and responses see each of them",
    "raft.messages": "types without behaviour, used in the tests of every role",
    "raft.transitions": "types without behaviour; the tests of roles and machine see what they lead to",
    "records.errors": "exceptions without behaviour; test_batch.py and test_record.py raise them",
}
"""Modules without a test file of their own, each with where it is tested instead."""

UNWANTED: Final = {
    "a path of one machine": r"/(?:work|home|root|Users)/\w",
    "a note to self": r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X)\b",
    "a promise to come back": r"\b(?:for n" + r"ow\b(?! on|, \w+ in )|work in prog" + r"ress)",
    "the registry of one network": r"https?://[\w.-]*(?:artifact|nexus|mirror|proxy)[\w.-]*",
}
"""What no file of the project says, as regular expressions."""


def tracked() -> list[Path]:
    """List the files that git knows; outside a clone, all that look like ours."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode == 0 and listed.stdout:
        return [path for line in listed.stdout.splitlines() if (path := ROOT / line).is_file()]
    folders = ("src", "tests", "bench", "docs", "examples")
    return [path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()]


def modules() -> list[str]:
    """Name every module that holds code, from `riverlog` down: `log.segment`."""
    return [
        ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        for path in sorted(SOURCE.rglob("*.py"))
        if path.name != "__init__.py"
    ]


def has_tests(module: str) -> bool:
    *room, name = module.split(".")
    return any(
        (ROOT / "tests" / kind).joinpath(*room, f"test_{name}.py").is_file()
        for kind in ("unit", "property", "e2e", "spark")
    )


def test_import_contracts_are_kept() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    checked = subprocess.run([linter], cwd=ROOT, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


def test_every_module_is_tested() -> None:
    messages = "wire.messages."  # all of them at once: tests/property/wire
    limits = ".limits"  # all of them at once: tests/unit/model/test_limits.py
    together = [module for module in modules() if module.startswith(messages) or module.endswith(limits)]
    untested = [module for module in modules() if not has_tests(module) and module not in together]
    assert [module for module in untested if module not in TESTED_ELSEWHERE] == []


@pytest.mark.parametrize("module", TESTED_ELSEWHERE)
def test_no_exception_outlives_its_reason(module: str) -> None:
    assert module in modules(), f"{module} is gone; take it from the list"
    assert not has_tests(module), f"{module} has its own tests now; take it from the list"


@pytest.mark.parametrize("module", modules())
def test_every_module_opens_with_a_promise(module: str) -> None:
    text = SOURCE.joinpath(*module.split(".")).with_suffix(".py").read_text()
    assert text.startswith(('"""', 'r"""'))
    assert len(text.splitlines()) <= 600, "look for the second idea in this module"
    assert not re.search(r'"""(Give|Let|Say|Tell) ', text), "begin a docstring with what is done"


def test_no_file_says_what_is_none_of_its_business() -> None:
    found = []
    for path in tracked():
        if path.suffix not in {".py", ".md", ".toml", ".txt", ".yml", ".yaml", ".sh", ""} or path == Path(__file__):
            continue
        text = path.read_text(errors="replace")
        for what, pattern in UNWANTED.items():
            found += [f"{path.relative_to(ROOT)}: {what}: {match[0]}" for match in re.finditer(pattern, text)]
    assert found == []


@pytest.mark.parametrize("path", sorted((ROOT / "tests" / "simulation").glob("*.py")), ids=lambda path: path.name)
def test_the_simulation_uses_public_names_only(path: Path) -> None:
    """Own classes may look into each other, and patches name what they replace: neither may name another's privates."""
    tree = list(ast.walk(ast.parse(path.read_text())))
    own = {node.attr for node in tree if isinstance(node, ast.Attribute) and _is_self(node.value)}
    own |= {node.name for node in tree if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    used = [node.attr for node in tree if isinstance(node, ast.Attribute) and not _is_self(node.value)]
    calls = [node for node in tree if isinstance(node, ast.Call)]
    used += [each.value for call in calls for each in call.args if isinstance(each, ast.Constant)]
    private = [name for name in used if isinstance(name, str) and re.fullmatch(r"_[a-z]\w*", name)]
    assert not set(private) - own, "reach it by a public name"


def _is_self(node: ast.expr) -> bool:
    """Return whether an expression is the object itself, or it as its base class."""
    if isinstance(node, ast.Call):
        return ast.unparse(node) == "super()"
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def test_every_setting_is_documented() -> None:
    text = (ROOT / "docs" / "configuration.md").read_text()
    assert [name for name in (*NODE_ONLY_SETTINGS, *TOPIC_SETTINGS) if f"`{name}`" not in text] == []


def test_the_table_of_metrics_is_current() -> None:
    assert metrics_table() in (ROOT / "docs" / "operations.md").read_text()


def test_the_picture_of_the_measurements_is_current() -> None:
    assert chart.PICTURE.read_text() == chart.picture(chart.PAGE.read_text())


def test_every_change_is_one_fragment() -> None:
    for path, sentence in fragments(ROOT / "changelog.d").items():
        assert sentence.endswith("."), path
        assert "](" not in sentence, f"{path}: the changelog lies in another folder than its fragments"


def test_decisions_are_numbered_without_gaps() -> None:
    names = sorted(path.name for path in (ROOT / "docs" / "adr").glob("*.md"))
    assert [int(name[:4]) for name in names] == list(range(1, len(names) + 1))
    for name in names:
        assert re.fullmatch(r"\d{4}(-[a-z0-9]+)+\.md", name)


@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "adr").glob("*.md")), ids=lambda path: path.name)
def test_a_decision_says_why_and_what_would_change_it(path: Path) -> None:
    text = path.read_text().lower()
    for part in ("context", "choice", "price", "what would change our mind"):
        assert part in text


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text()):
        if "://" not in target and not target.startswith("#"):
            assert (path.parent / target.partition("#")[0]).exists(), target


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_in_documents_exist(path: Path) -> None:
    text = path.read_text()
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"(?:^|`)make ([a-z]+)", text, re.MULTILINE)) <= targets
    words = {command.words for command in COMMANDS} | set(GROUPS)
    for line in re.findall(r"(?:^|`)(?:\.venv/bin/)?riverlog (?!ready )([a-z][a-z -]*)", text, re.MULTILINE):
        first, *rest = line.split()
        command = f"{first} {rest[0]}" if first in GROUPS and rest else first
        assert command in words, f"riverlog {line}"


@pytest.mark.parametrize("name", ["architecture.md", "reading-the-source.md", "glossary.md"])
def test_documents_name_files_that_exist(name: str) -> None:
    known = [path.relative_to(SOURCE).with_suffix("").as_posix() for path in SOURCE.rglob("*.py")]
    rooms = {part for path in known for part in path.split("/")[:-1]}
    text = (ROOT / "docs" / name).read_text()
    for path in set(re.findall(r"(?<![\w/.-])([a-z_]+(?:/[a-z_]+)+)(?:\.\w+)?(?![\w/-])", text)):
        if path.split("/")[0] in rooms:
            assert any(f"/{each}".endswith(f"/{path}") or f"/{each}/".find(f"/{path}/") >= 0 for each in known), path
