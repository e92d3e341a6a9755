"""Scenarios in which the power fails at every call to the disk in turn, not at some of them.

At each call the disk is kept as a power loss would leave it, several times, because it may leave more or less; equal
ones count once. Each is opened and looked at, or lives on and loses power again, at every call of its next life.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol, Self

from riverlog.controller.snapshot_files import BadMetadata
from riverlog.log.identity import DirectoryRefused
from riverlog.model.errors import Refusal
from tests.simulation.syncs import LeftOut
from tests.support.disk import MemoryDisk

COPIES: Final = 12
"""How often a power loss is tried at each call: each time the disk keeps something else of what was not synced."""
_LESS_IN_LATER_LIVES: Final = 6
"""There are many of those, one behind each crash of the first."""
_WITHOUT_CHANGE: Final = ("open", "read")
"""Calls before which a power loss leaves the same as before the next one."""

REFUSALS: Final = (Refusal, DirectoryRefused, BadMetadata, AssertionError, OSError)
"""How a log, a directory or the metadata says that it cannot be used. Any other error is the drill's own."""

Off = Callable[[], AbstractContextManager[Any]]


class World(Protocol):
    """A disk, whoever uses it, and what must be found on it."""

    disk: MemoryDisk

    def after_crash(self, seed: int) -> Self:
        """Return this world as it would go on if the power failed now; this one knows nothing of it."""
        ...

    def expectations(self) -> str:
        """Return what must be found, to compare worlds by."""
        ...

    def aftermath(self) -> list[str]:
        """Open what was left, look at it, go on; give what is wrong."""
        ...


@dataclass(frozen=True)
class Scenario:
    """What happens in each life; at the end of each, if not before, the power fails."""

    name: str
    begin: Callable[[], World]
    lives: tuple[Callable[[Any], None], ...]


class Crash(NamedTuple):
    """A power loss: at which call of a life, and which of the copies it left."""

    call: int
    copy: int

    def strike(self, world: World) -> World:
        """Return the world as it would go on."""
        return world.after_crash(self.call * 1_000 + self.copy)


@dataclass(frozen=True)
class _Left:
    """What a power loss left."""

    crashes: tuple[Crash, ...]
    world: World
    lacks: bool
    """In this life or one before it, a wait was left out that nothing else made up for until the power failed."""

    def key(self) -> object:
        return frozenset(self.world.disk.everything().items()), self.world.expectations()


def wrong_at_crash_points(scenario: Scenario, *, copies: int = COPIES) -> list[str]:
    """Lose power everywhere, and return what was wrong."""
    return [_say(scenario, crashes, wrong) for crashes, wrong in _search(scenario, nullcontext, copies)]


def noticed_at_crash_points(off: Off, scenarios: Iterable[Scenario], *, copies: int = COPIES) -> str | None:
    """Leave out a wait, or break another rule, and let the power fail everywhere; give what goes wrong only then."""
    for scenario in scenarios:
        for crashes, wrong in _search(scenario, off, copies):
            if not _is_wrong_anyway(scenario, crashes):
                return _say(scenario, crashes, wrong)
    return None


def _search(scenario: Scenario, off: Off, copies: int) -> Iterator[tuple[tuple[Crash, ...], str]]:
    worlds = [_Left((), scenario.begin(), lacks=False)]
    looked_at: set[object] = set()
    for number, life in enumerate(scenario.lives, start=1):
        is_last = number == len(scenario.lives)
        left: dict[object, _Left] = {}
        for before in worlds:
            tried = copies if number == 1 else max(1, copies // _LESS_IN_LATER_LIVES)
            for after in _lose_everywhere(before, life, off, tried, only_lacking=is_last):
                key = after.key()
                left.setdefault(key, after)
                if after.lacks and key not in looked_at:
                    looked_at.add(key)
                    with off():
                        wrong = _aftermath(after.world.after_crash(0))
                    if wrong:
                        yield after.crashes, wrong
        worlds = list(left.values())


def _lose_everywhere(
    before: _Left, life: Callable[[Any], None], off: Off, copies: int, *, only_lacking: bool
) -> list[_Left]:
    """Live once, losing power at every call and at the end."""
    world, left, calls = before.world.after_crash(0), list[_Left](), 0
    with off() as left_out:

        def lose_power(kind: str, _path: str) -> None:
            nonlocal calls
            calls += 1
            lacks = before.lacks or not isinstance(left_out, LeftOut) or left_out.is_missed
            if kind in _WITHOUT_CHANGE or (only_lacking and not lacks):
                return
            for copy in range(copies):
                crash = Crash(calls, copy)
                left.append(_Left((*before.crashes, crash), crash.strike(world), lacks))

        _live(world, life, lose_power)
    return left


def _live(world: World, life: Callable[[Any], None], before_step: Callable[[str, str], None]) -> None:
    world.disk.before_step = before_step
    try:
        life(world)
    except REFUSALS:
        pass  # who looks at what the last power loss left will be told
    before_step("end", "")


def _is_wrong_anyway(scenario: Scenario, crashes: tuple[Crash, ...]) -> bool:
    """Return whether something is wrong behind the same crashes when nothing is left out."""
    world = scenario.begin()
    for life, crash in zip(scenario.lives, crashes, strict=False):
        world = _lose_at(world.after_crash(0), life, crash)
    return bool(_aftermath(world))


def _lose_at(world: World, life: Callable[[Any], None], crash: Crash) -> World:
    calls = 0
    after: World | None = None

    def lose_power(_kind: str, _path: str) -> None:
        nonlocal calls, after
        calls += 1
        if calls == crash.call:
            after = crash.strike(world)

    _live(world, life, lose_power)
    return after or crash.strike(world)


def _aftermath(world: World) -> str | None:
    try:
        return next(iter(world.aftermath()), None)
    except REFUSALS as error:
        return repr(error)


def _say(scenario: Scenario, crashes: tuple[Crash, ...], wrong: str) -> str:
    return f"{scenario.name}, power lost at {' and '.join(f'call {crash.call}' for crash in crashes)}: {wrong}"
