"""The machine's clocks."""

import time


class SystemClock:
    """The Clock port over the operating system."""

    monotonic = staticmethod(time.monotonic)

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000
