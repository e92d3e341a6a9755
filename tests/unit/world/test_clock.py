"""The machine's clocks run forward and agree with everybody else's."""

import time

from riverlog.world.clock import SystemClock


def test_both_clocks() -> None:
    clock = SystemClock()
    assert clock.monotonic() <= clock.monotonic()
    assert abs(clock.wall_ms() - time.time() * 1000) < 10_000
