"""The programs in docs/clients.md do what stands below them: those in Java, JavaScript and Go."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conformance.documents import Program, programs_in
from tests.conformance.foreign import build


@pytest.mark.parametrize("program", programs_in("java", "javascript", "go"), ids=lambda program: program.client)
def test_the_program_prints_what_the_document_says(
    program: Program, bootstrap: str, fresh_name: Callable[[], str], tmp_path: Path
) -> None:
    text = program.against(bootstrap, fresh_name())
    try:
        command, folder = _prepared(program.language, text, tmp_path)
    except build.CannotBuild as error:
        pytest.skip(str(error))
    program.check(command, folder)


def _prepared(language: str, text: str, folder: Path) -> tuple[list[str], Path]:
    """Lay the program where its language finds the client, and give the command that runs it."""
    if language == "javascript":
        return ["node", "-e", text], Path(build.kafkajs()[-1]).parent
    if language == "java":
        source = folder / "Orders.java"
        source.write_text(text)
        return [*build.JAVA, "-cp", build.class_path(), str(source)], folder
    build.franz_go()
    for name in ("go.mod", "go.sum"):
        shutil.copy(build.SOURCES / "franz_go" / name, folder)
    (folder / "main.go").write_text(text)
    return ["go", "run", "."], folder
