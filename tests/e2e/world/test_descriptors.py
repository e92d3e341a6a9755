"""The limit on descriptors is that of a process, so a process of its own is asked."""

import subprocess
import sys
from typing import Final

PROGRAM: Final = """
import resource
from riverlog.world.descriptors import descriptor_limit, raise_descriptor_limit
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
print(descriptor_limit(), raise_descriptor_limit(), resource.getrlimit(resource.RLIMIT_NOFILE))
"""


def limits(soft: int, hard: int) -> str:
    program = PROGRAM.format(soft=soft, hard=hard)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()


def test_the_soft_limit_becomes_the_hard_one() -> None:
    assert limits(100, 300) == "100 300 (300, 300)"


def test_a_limit_that_cannot_be_raised_stays() -> None:
    assert limits(300, 300) == "300 300 (300, 300)"
