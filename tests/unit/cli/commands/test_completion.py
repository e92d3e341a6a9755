"""The scripts for shells; bash runs its own here."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from riverlog.cli.commands.completion import SCRIPTS

FOLDER = Path(sys.executable).parent


@pytest.mark.parametrize("shell", SCRIPTS)
def test_a_script_is_one_that_the_shell_can_read(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    subprocess.run([shell, "-n"], input=SCRIPTS[shell], text=True, check=True, timeout=30)


@pytest.mark.parametrize(
    ("line", "completed"),
    [("riverlog top", "topics"), ("riverlog topics de", "describe delete"), ("riverlog consume x -o j", "json")],
)
def test_bash_completes(line: str, completed: str) -> None:
    program = f"""
        PATH={FOLDER}:$PATH; eval "$(riverlog completion bash)"
        COMP_WORDS=({line}); COMP_CWORD={len(line.split()) - 1}; _riverlog; echo "${{COMPREPLY[@]}}"
    """
    ran = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout == f"{completed}\n"
