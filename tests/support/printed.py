"""The blocks of a document, run as printed: shell by bash, Python as a cell of a notebook, with nothing added.

A document is walked in order, in one folder. Only addresses differ where a node of the test has others than the usual
ones. Blocks in another language (`text`) are not for running.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[2]
_FENCE: Final = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_HEADING: Final = re.compile(r"^#+ (.*)$", re.MULTILINE)
_KERNEL: Final = """
import json, sys
names = {"__name__": "__main__"}
for line in sys.stdin:
    try:
        exec(compile(json.loads(line), "cell", "exec"), names)
        print("\\ndone", flush=True)
    except BaseException as problem:
        print("\\nfailed", json.dumps(f"{type(problem).__name__}: {problem}"), flush=True)
"""
_CELL: Final = """
import ast, asyncio, inspect, sys
code = compile(sys.stdin.read(), "cell", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
result = eval(code, {"__name__": "__main__"})
if inspect.iscoroutine(result):
    asyncio.run(result)
"""


class Block(NamedTuple):
    """One block: under which heading, in which language, and what is printed."""

    heading: str
    language: str
    text: str


def blocks(document: str, section: str | None = None) -> list[Block]:
    """Return the blocks of a document, or of one section of it, named by its second-level heading."""
    text = (ROOT / document).read_text()
    if section is not None:
        assert f"\n## {section}\n" in text, f"{document} has no section {section}"
        text = f"## {section}\n" + text.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    outside = _FENCE.sub(lambda found: "\n" * found[0].count("\n"), text)  # a comment in a block is no heading
    found = []
    for fence in _FENCE.finditer(text):
        line = text.count("\n", 0, fence.start())
        before = "\n".join(outside.split("\n")[:line])
        found.append(Block(_HEADING.findall(before)[-1], fence[1], fence[2]))
    return found


@dataclass
class Walk:
    """Runs blocks one after another, in a folder, with the commands of one environment of Python."""

    folder: Path
    addresses: Mapping[str, str] = field(default_factory=dict)
    """By the address that is printed: the one of the node that is used. Every document prints the usual ones."""
    bin: Path = Path(sys.executable).parent
    seconds_max: float = 60.0

    def run(self, block: Block) -> str:
        """Run a block and return what it prints; one that fails fails the test."""
        command = {
            "sh": ["bash", "-euo", "pipefail", "-c", self.here(block.text)],
            "python": [str(self.bin / "python"), "-c", _CELL],
        }[block.language]
        ran = subprocess.run(
            command,
            input=self.here(block.text) if block.language == "python" else "",
            cwd=self.folder,
            env=self._environment(),
            capture_output=True,
            text=True,
            timeout=self.seconds_max,
            check=False,
        )
        assert ran.returncode == 0, f"{block.text}\n{ran.stdout}\n{ran.stderr}"
        if "spark-class" not in block.text:  # a daemon of Spark's own, which we do not start
            assert "Using incubator modules" not in ran.stderr, ran.stderr
        return ran.stdout

    @contextmanager
    def notebook(self) -> "Iterator[Notebook]":
        """Open a process of Python in which cells share their names."""
        with (self.folder / "notebook.err").open("wb") as errors:
            process = subprocess.Popen(
                [str(self.bin / "python"), "-c", _KERNEL],
                cwd=self.folder,
                env=self._environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        notebook = Notebook(self, process)
        try:
            yield notebook
        finally:
            process.stdin.close()  # type: ignore[union-attr]  # it is a pipe
            process.wait(self.seconds_max)
            process.stdout.close()  # type: ignore[union-attr]  # so is this

    def here(self, text: str) -> str:
        """Return a text with the addresses of this walk."""
        for printed, here in self.addresses.items():
            text = text.replace(printed, here)
        return text

    def _environment(self) -> dict[str, str]:
        """Return an environment as a reader has it: with our commands on the path, and none of our variables."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("RIVERLOG_", "PYTEST_"))}
        here = {"PATH": f"{self.bin}:{os.environ['PATH']}"}
        if "127.0.0.1:9092" in self.addresses:  # commands name no broker
            here["RIVERLOG_BOOTSTRAP_SERVERS"] = self.addresses["127.0.0.1:9092"]
        if "127.0.0.1:9870" in self.addresses:
            here["RIVERLOG_CHECKPOINTS"] = self.addresses["127.0.0.1:9870"]
        return kept | here


class Notebook:
    """Cells of Python, one after another in one process."""

    def __init__(self, walk: Walk, process: "subprocess.Popen[str]") -> None:
        self._walk = walk
        self._process = process

    def run(self, block: Block) -> str:
        """Run a cell and return what it prints; one that raises fails the test."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(self._walk.here(block.text)) + "\n")
        self._process.stdin.flush()
        printed = []
        for line in self._process.stdout:
            if line == "done\n":
                return "".join(printed)
            assert not line.startswith("failed "), f"{block.text}\n{line}"
            printed.append(line)
        raise AssertionError(f"Python ended in {block.text}")
