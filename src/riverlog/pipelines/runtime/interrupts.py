"""Ctrl-C while a pipeline is waited for: it ends its batch, and the program goes on with KeyboardInterrupt.

PySpark answers the signal at once, by a question to Java in the middle of another one, which breaks the connection. So
for that time it is only noted; a second Ctrl-C does not wait for the batch. Where somebody else takes the signal, such
as the command line, and outside of the main thread, it is left to them.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupts:
    """Whether there was one."""

    def __init__(self) -> None:
        self.noted = False

    def note(self, _number: int, _frame: FrameType | None) -> None:
        """Note the first; the second is raised."""
        if self.noted:
            raise KeyboardInterrupt
        self.noted = True


@contextmanager
def interrupts() -> Iterator[Interrupts]:
    """Note interrupts within this block, in place of PySpark."""
    found = Interrupts()
    before = signal.getsignal(signal.SIGINT)
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or not str(getattr(before, "__module__", "")).startswith("pyspark."):
        yield found
        return
    signal.signal(signal.SIGINT, found.note)
    try:
        yield found
    finally:
        signal.signal(signal.SIGINT, before)
