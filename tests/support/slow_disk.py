"""A node on a slow disk: `python slow_disk.py BYTES_PER_SECOND dev …` is riverlog with flushes that take their time.

Writes go to the page cache as ever. A flush takes as long as a medium of that speed needs for what was written to the
file since its last one; there is one medium, so flushes wait for one another. All else is the real thing.
"""

import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from riverlog.model.ports import Buffer
from riverlog.world.disk import SystemFile
from tests.support.node import Node


class NodeOnSlowDisk(Node):
    """A node process whose disk takes so many bytes in a second."""

    bytes_per_second = 100_000_000

    def _command(self) -> list[str]:
        _riverlog, *arguments = super()._command()
        return [sys.executable, "-m", "tests.support.slow_disk", str(self.bytes_per_second), *arguments]


def slow_down(bytes_per_second: int) -> None:
    """Make all flushes of this process take their time."""
    medium = threading.Lock()
    unflushed: Counter[str] = Counter()
    write, sync = SystemFile.write, SystemFile.sync

    def counted_write(self: SystemFile, position: int, buffers: Sequence[Buffer]) -> int:
        written = write(self, position, buffers)
        unflushed[self.path] += written
        return written

    def slow_sync(self: SystemFile) -> None:
        with medium:
            time.sleep(unflushed.pop(self.path, 0) / bytes_per_second)
        sync(self)

    SystemFile.write = counted_write  # type: ignore[method-assign]
    SystemFile.sync = slow_sync  # type: ignore[method-assign]


if __name__ == "__main__":
    from riverlog.cli.main import main

    slow_down(int(sys.argv.pop(1)))
    sys.argv[0] = str(Path(sys.executable).with_name("riverlog"))
    sys.exit(main())
