"""The programs in docs/clients.md do what stands below them."""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

DOCUMENT: Final = Path(__file__).parents[2] / "docs" / "clients.md"
ADDRESS: Final = "127.0.0.1:9092"
PROGRAM: Final = re.compile(
    r"^## (\S+)\n.*?^```(python|sh)\n(.*?)^```\n\n^```text\n(.*?)^```", re.MULTILINE | re.DOTALL
)
PROGRAMS: Final = PROGRAM.findall(DOCUMENT.read_text())


def test_every_client_has_a_program() -> None:
    assert len(PROGRAMS) == DOCUMENT.read_text().count("\n## ")


@pytest.mark.parametrize(
    ("client", "language", "program", "expected"), PROGRAMS, ids=[client for client, *_ in PROGRAMS]
)
def test_the_program_prints_what_the_document_says(
    client: str, language: str, program: str, expected: str, bootstrap: str, fresh_name: Callable[[], str]
) -> None:
    if client == "kcat" and not shutil.which("kcat"):
        pytest.skip("kcat is not installed")
    topic = f"{client.removesuffix('-kafka')}-orders"
    assert ADDRESS in program
    assert topic in program
    program = program.replace(ADDRESS, bootstrap).replace(topic, fresh_name())
    command = [sys.executable, "-c", program] if language == "python" else ["sh", "-c", program]
    ran = subprocess.run(command, check=False, capture_output=True, text=True, timeout=30)
    assert (ran.returncode, ran.stdout) == (0, expected), ran.stderr
