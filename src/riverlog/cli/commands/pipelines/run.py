"""`pipelines run`: the pipelines of a file on Spark, started again when they fail, stopped behind their batch."""

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import urlsplit

import click

from riverlog.cli.cluster_options import brokers_option
from riverlog.cli.commands.pipelines.checkpoints import opened
from riverlog.cli.commands.pipelines.spark_session import (
    bootstrap_for_all,
    check_broker,
    check_file,
    file_argument,
    loaded,
    need_spark,
    session,
    spark_options,
    store_beside_option,
)
from riverlog.cli.terminal.exits import CommandError, ExitCode, usage_error
from riverlog.cli.terminal.options import count_option

if TYPE_CHECKING:
    from riverlog.pipelines import Pipeline
    from riverlog.pipelines.runtime.supervisor import Supervisor

_LOOK_SECONDS: Final = 0.25
_LINE_SECONDS: Final = 10.0
"""Between two lines about progress, where they do not replace each other."""
_AVAILABLE_NOW: Final = "available-now"


@click.command("run")
@file_argument
@spark_options
@click.option(
    "--trigger",
    metavar="TIME|available-now",
    help="When batches start: every '10 seconds', or once for what is there. Without it: as records arrive.",
)
@count_option("--restarts", default=10, least=0, most=1_000_000, help="Give up after N failures in a row.")
@click.option("--quiet", is_flag=True, help="Print no progress.")
@brokers_option
@store_beside_option
def run_pipelines(
    file: Path,
    master: str | None,
    conf: tuple[str, ...],
    trigger: str | None,
    restarts: int,
    quiet: bool,
    bootstrap: str,
    address: str | None,
) -> int:
    """Run the pipelines of a file on Spark, until they are stopped.

    The file assigns them to variables, or has a function pipeline() or main() that returns them. It is the same for
    this machine and for a cluster, which --master names. A pipeline that fails is started again, after a pause that
    grows. Ctrl-C, SIGTERM and `riverlog pipelines stop` let it end its batch; a second Ctrl-C does not wait.
    """
    check_file(file)
    need_spark()
    _check_trigger(trigger)
    check_broker(bootstrap)
    with (
        bootstrap_for_all(bootstrap),
        _Asked() as asked,
        session(file.stem, master=master, conf=conf, bootstrap=bootstrap, store=address, folder=file.parent),
    ):
        pipelines = loaded(file)
        _check_stores(pipelines)
        return _supervise(pipelines, asked, trigger, restarts, quiet=quiet)


def _supervise(pipelines: "list[Pipeline]", asked: "_Asked", trigger: str | None, restarts: int, *, quiet: bool) -> int:
    from riverlog.pipelines.runtime.supervisor import Supervisor

    lines = _Lines(quiet=quiet)
    names = ", ".join(pipeline.name for pipeline in pipelines)
    if asked.times():
        lines.say(f"{names} was stopped before it began")
        return ExitCode.DONE
    lines.say(f"runs {names}; `riverlog pipelines stop` or Ctrl-C ends it")
    supervisor = Supervisor(pipelines, report=lines.say, trigger=trigger, restarts_max=restarts, random=Random())
    asked.listen()  # Spark has taken Ctrl-C for itself when it began
    with _spark_is_there():
        while not asked.times() and supervisor.check():
            lines.show(supervisor)
            time.sleep(_LOOK_SECONDS)
        if asked.times():
            lines.say("stops after this batch; press Ctrl-C once more to stop at once")
            _stop(supervisor, asked)
            lines.say(f"{names} has stopped")
    failed = [each.pipeline.name for each in supervisor.pipelines if each.failure is not None]
    if failed:
        raise CommandError(
            f"{', '.join(failed)} failed; `riverlog pipelines describe {failed[0]}` says how far it came"
        )
    return ExitCode.DONE


def _stop(supervisor: "Supervisor", asked: "_Asked") -> None:
    """Stop behind the batch, or at once where that is asked for meanwhile."""
    from concurrent.futures import ThreadPoolExecutor, wait

    pool = ThreadPoolExecutor(1)
    stopping = pool.submit(supervisor.stop, finish=True)
    while not wait([stopping], _LOOK_SECONDS).done:
        if asked.times() > 1:
            supervisor.stop(finish=False)
    stopping.result()
    pool.shutdown()


class _Lines:
    """What is told on standard error: events, and how it goes; on a terminal the latter replaces itself."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._replaces = sys.stderr.isatty()
        self._shown: list[str] = []
        self._shown_at = float("-inf")
        self._open = False
        """Whether the cursor is in a line that will be replaced."""

    def say(self, what: str) -> None:
        print(f"{self._clear()}{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)

    def show(self, supervisor: "Supervisor", *, last: bool = False) -> None:
        """Print progress, if there is news and it is time."""
        due = self._replaces or last or time.monotonic() - self._shown_at >= _LINE_SECONDS
        if self._quiet or not due or (lines := supervisor.lines()) == self._shown or not lines:
            return
        self._shown, self._shown_at = lines, time.monotonic()
        if self._replaces and len(lines) == 1:
            print(f"{self._clear()}{lines[0]}", end="", file=sys.stderr, flush=True)
            self._open = True
        else:
            for line in lines:
                self.say(line)

    def _clear(self) -> str:
        was_open, self._open = self._open, False
        return "\r\x1b[K" if was_open else ""


@contextmanager
def _spark_is_there() -> Iterator[None]:
    """Turn the end of Spark itself into a sentence: nothing can be started again."""
    from py4j.protocol import Py4JError

    try:
        yield
    except (Py4JError, OSError) as problem:
        raise CommandError(
            f"Spark has ended ({problem}); start the pipeline again, it goes on where it stopped"
        ) from problem


class _Asked:
    """Notes Ctrl-C and SIGTERM instead of ending, also while Spark starts; its own handler would cut the batch off.

    Use it as a context manager. Until pipelines run, the second one ends the program as usual.
    """

    def __init__(self) -> None:
        self._times = 0
        self._runs = False

    def times(self) -> int:
        """Return how often they came."""
        return self._times

    def listen(self) -> None:
        """Take the signals from whoever has taken them meanwhile: from now on they are all noted."""
        self._runs = True
        for number in self._before:
            signal.signal(number, self._note)

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._note) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, _number: int, _frame: Any) -> None:
        self._times += 1
        if self._times > 1 and not self._runs:
            raise KeyboardInterrupt


def _check_trigger(trigger: str | None) -> None:
    from riverlog.pipelines.spans import span_ms

    if trigger is not None and trigger != _AVAILABLE_NOW:
        try:
            span_ms(trigger, "--trigger")
        except ValueError as problem:
            raise usage_error(f"{problem}; or {_AVAILABLE_NOW}") from None


def _check_stores(pipelines: "list[Pipeline]") -> None:
    """Ask every store that will hold a checkpoint whether it is there."""
    places = {pipeline.checkpoint(output) for pipeline in pipelines for output in pipeline.outputs}
    for address in sorted({urlsplit(place).netloc for place in places if place.startswith("webhdfs:")}):
        with opened(address) as store:
            store.queries()
