"""The steps of a batch at which something is killed, as relays see them, and the trap that waits for one.

A batch goes  join -> write -> ANNOUNCE -> RENAME to commits/N  where its checkpoint lies on the node: the store there
ends the transaction, by an EndTransaction that passes the relay to the log, before it answers the RENAME. Where the
checkpoint lies in a folder, the sink sends the EndTransaction in its commit(), before Spark writes commits/N.
"""

import threading
from collections.abc import Callable
from typing import Final, NamedTuple

from tests.support.relay import Cut, Moment, Passing
from tests.support.waiting import until

STRIKE_SECONDS_MAX: Final = 300.0


class Step(NamedTuple):
    """A request, and how far it has come."""

    name: str
    moment: Moment
    about: str
    """What the request says, with the pipeline's name in it."""
    passes: bool = False
    """Whether it is passed on after the strike, for it is not of those who were struck."""


WITH_NODE: Final = "between its record and the markers, the node too"
"""Where the node is killed as well, as soon as it has written something about a transaction."""
JOIN: Final = "pipeline:{}"
COMMIT: Final = "destination=/pipelines/{}/commits/"
STEPS: Final = {
    "after join": Step("JoinTransaction", Moment.ANSWERED, JOIN),
    "after the tasks' flush": Step("ANNOUNCE", Moment.ASKED, "/pipelines/{}?"),
    "before EndTransaction": Step("EndTransaction", Moment.ASKED, JOIN, passes=True),
    "between its record and the markers": Step("EndTransaction", Moment.FORWARDED, JOIN, passes=True),
    "before commits/N": Step("RENAME", Moment.ASKED, COMMIT),
    "after commits/N": Step("RENAME", Moment.ANSWERED, COMMIT),
    WITH_NODE: Step("EndTransaction", Moment.ASKED, JOIN, passes=True),
}
"""Where a driver is killed whose checkpoint lies on the node."""

FOLDER_STEPS: Final = {
    "after join": Step("JoinTransaction", Moment.ANSWERED, "spark:"),
    "after the tasks' flush": Step("EndTransaction", Moment.ASKED, "spark:"),
    "between its record and the markers": Step("EndTransaction", Moment.FORWARDED, "spark:", passes=True),
    "before commits/N": Step("EndTransaction", Moment.ANSWERED, "spark:"),
    "after commits/N": Step("JoinTransaction", Moment.ASKED, "spark:"),
}
"""Where a driver is killed whose checkpoint lies in a folder."""

WRITTEN: Final = Step("Produce", Moment.ANSWERED, JOIN)
"""When an attempt of a task has written records, and does not know it yet."""


class Trap:
    """The watcher that strikes once, at a step of a pipeline, after it has `spared` others there."""

    def __init__(self, step: Step, pipeline: str, strike: Callable[[Passing], object], *, spared: int = 0) -> None:
        self._step = step
        self._about = step.about.format(pipeline)
        self._strike = strike
        self._left = spared
        self._turn = threading.Lock()
        self._sprung = threading.Event()
        self._struck = threading.Event()
        self._failure: BaseException | None = None

    def __call__(self, passing: Passing) -> None:
        """See what passes."""
        step = self._step
        if (passing.name, passing.moment) != (step.name, step.moment) or self._about not in passing.about:
            return
        with self._turn:
            self._left -= 1
            if self._left >= 0 or self._sprung.is_set():
                return
            self._sprung.set()
        try:
            self._strike(passing)
        except BaseException as error:
            self._failure = error
            raise
        finally:
            self._struck.set()
        if not step.passes:
            raise Cut

    def until_struck(self, check: Callable[[], None], complaint: Callable[[], str]) -> None:
        """Wait for it; `check` fails where it cannot come any more."""

        def struck() -> bool:
            if not self._sprung.is_set():
                check()
            return self._struck.is_set()

        until(struck, complaint, seconds_max=STRIKE_SECONDS_MAX)
        if self._failure is not None:
            raise self._failure
