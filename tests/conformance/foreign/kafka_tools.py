"""Apache Kafka's own command line tools, run as its shell scripts run them: one Java program per call."""

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.conformance.foreign.build import JAVA, class_path

TOOL_SECONDS_MAX: Final = 60
PLACES: Final = {
    "ConfigCommand": "kafka.admin",
    "ConsoleConsumer": "org.apache.kafka.tools.consumer",
    "ConsumerGroupCommand": "org.apache.kafka.tools.consumer.group",
    "ReassignPartitionsCommand": "org.apache.kafka.tools.reassign",
}
"""Where a tool's class lies, unless it is org.apache.kafka.tools."""


@dataclass(frozen=True, slots=True)
class Ran:
    """How a tool ended, and all that it printed."""

    code: int
    text: str

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for line in self.text.splitlines() if line.strip()]


def run(tool: str, *arguments: str, given: str = "") -> Ran:
    """Run a tool to its end."""
    command = [*JAVA, "-cp", class_path(), f"{PLACES.get(tool, 'org.apache.kafka.tools')}.{tool}", *arguments]
    done = subprocess.run(
        command,
        input=given,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",  # a dump prints values as they are
        timeout=TOOL_SECONDS_MAX,
    )
    return Ran(done.returncode, done.stdout)


def dump(files: list[Path], *arguments: str) -> Ran:
    """Run DumpLogSegments over all of these files at once."""
    return run("DumpLogSegments", "--files", ",".join(map(str, files)), *arguments)
