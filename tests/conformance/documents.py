"""The programs in docs/clients.md, and what each says that it prints."""

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

DOCUMENT: Final = Path(__file__).parents[2] / "docs" / "clients.md"
ADDRESS: Final = "127.0.0.1:9092"
RUN_SECONDS_MAX: Final = 60
_PROGRAM: Final = re.compile(r"^## (\S+)\n.*?^```(\w+)\n(.*?)^```\n\n^```text\n(.*?)^```", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Program:
    client: str
    language: str
    text: str
    expected: str

    def against(self, bootstrap: str, topic: str) -> str:
        """Return the program's text for another address and a topic that nobody used before."""
        written = f"{self.client.removesuffix('-kafka')}-orders"
        assert ADDRESS in self.text
        assert written in self.text
        return self.text.replace(ADDRESS, bootstrap).replace(written, topic)

    def check(self, command: Sequence[str], folder: Path | None = None) -> None:
        """Run the command and compare what it prints with the document."""
        ran = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True, timeout=RUN_SECONDS_MAX)
        assert (ran.returncode, ran.stdout) == (0, self.expected), ran.stderr


PROGRAMS: Final = tuple(Program(*found) for found in _PROGRAM.findall(DOCUMENT.read_text()))


def programs_in(*languages: str) -> list[Program]:
    return [program for program in PROGRAMS if program.language in languages]
