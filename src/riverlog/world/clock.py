"""The machine's clocks."""

import time


class SystemClock:
    """The Clock port over the operating system."""

    monotonic = staticmethod(time.monotonic)  # not a method that calls it: it is asked for several times per request

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000
