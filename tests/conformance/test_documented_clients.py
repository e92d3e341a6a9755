"""The programs in docs/clients.md do what stands below them: those in Python and for the shell."""

import shutil
import sys
from collections.abc import Callable

import pytest

from tests.conformance.documents import DOCUMENT, PROGRAMS, Program, programs_in


def test_every_client_has_a_program() -> None:
    assert len(PROGRAMS) == DOCUMENT.read_text().count("\n## ")
    assert {program.language for program in PROGRAMS} == {"python", "sh", "java", "javascript", "go"}


@pytest.mark.parametrize("program", programs_in("python", "sh"), ids=lambda program: program.client)
def test_the_program_prints_what_the_document_says(
    program: Program, bootstrap: str, fresh_name: Callable[[], str]
) -> None:
    if program.client == "kcat" and not shutil.which("kcat"):
        pytest.skip("kcat is not installed")
    text = program.against(bootstrap, fresh_name())
    program.check([sys.executable, "-c", text] if program.language == "python" else ["sh", "-c", text])
