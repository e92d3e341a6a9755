"""`python -m bench`: measure riverlog and Apache Kafka in one run and print the ratios."""

import argparse
import os
import shlex
import signal
import sys
import tempfile
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

from bench import clients, machine
from bench.cache import cache_folder
from bench.lines import COLD_LINE, LINES, WARM_UP_LINES, select
from bench.nodes import Riverlog
from bench.peer import Kafka
from bench.report import Circumstances, as_json, markdown
from bench.runner import Plan, prepare, run
from bench.trial import Contender
from bench.workshop import Workshop

RESULTS: Final = Path(__file__).with_name("results")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what the command line asks for; the exit code is 1 where a line failed."""
    options = parse(arguments)
    if options.list:
        for line in LINES:
            print(f"{line.name:22} {line.about}")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))  # so that the brokers are stopped, too
    begin, load_average = machine.now(), os.getloadavg()
    date = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M")
    contenders: list[Contender] = [Riverlog(cache_folder()), Kafka(cache_folder())]
    entrants = prepare([each for each in contenders if options.only in (None, each.name.lower())], _say)
    options.data.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="run-", dir=options.data) as folder,
        Workshop(Path(folder)) as workshop,
    ):
        plan = Plan(
            options.lines,
            options.runs,
            options.seconds,
            Path(folder),
            cold_line=COLD_LINE,
            warm_up_lines=WARM_UP_LINES,
            warm_seconds_max=options.warm_seconds,
            workshop=workshop,
        )
        columns = run(plan, entrants, _say)
    seen = Circumstances(
        date=date,
        command=shlex.join(["python", "-m", "bench", *(sys.argv[1:] if arguments is None else arguments)]),
        machine=machine.describe(),
        clients=clients.VERSION,
        load_average=load_average,
        runs=options.runs,
        seconds=options.seconds,
        minutes=(machine.now() - begin) / 60,
    )
    report = markdown(options.lines, columns, entrants, seen)
    print(f"\n{report}")
    RESULTS.mkdir(exist_ok=True)
    name = RESULTS / datetime.now().strftime("%Y%m%d-%H%M%S")
    name.with_suffix(".md").write_text(report)
    name.with_suffix(".json").write_text(as_json(options.lines, columns, entrants, seen))
    print(f"written to {os.path.relpath(name)}.md and .json")
    failed = any((column.absence or "").startswith("FAILED") for line in columns.values() for column in line.values())
    return int(failed)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--list", action="store_true", help="name the lines and what they mean, and measure nothing")
    parser.add_argument(
        "lines", nargs="*", metavar="LINE", help="measure these only; `small` stands for all that begin with `small-`"
    )
    parser.add_argument("--runs", type=_runs, help="runs of each line and broker (default: 3, quick: 2)")
    parser.add_argument("--seconds", type=_seconds, help="length of one run (default: 4, quick: 1)")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter runs, for a first look")
    parser.add_argument("--only", choices=["riverlog", "kafka"], help="measure one broker")
    parser.add_argument(
        "--warm-seconds", type=_seconds, default=35.0, help="mixed load before Kafka is measured (default: 35)"
    )
    parser.add_argument(
        "--data", type=Path, default=cache_folder() / "data", metavar="FOLDER", help="where the brokers keep their logs"
    )
    options = parser.parse_args(arguments)
    try:
        options.lines = select(options.lines) or list(LINES)
    except ValueError as error:
        parser.error(str(error))
    if options.runs is None:
        options.runs = 2 if options.quick else 3
    if options.seconds is None:
        options.seconds = 1.0 if options.quick else 4.0
    return options


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 < value <= 3600:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 3600 seconds")
    return value


def _runs(text: str) -> int:
    value = int(text)
    if not 1 <= value <= 1000:
        raise argparse.ArgumentTypeError(f"{text} is not between 1 and 1000 runs")
    return value


def _say(sentence: str) -> None:
    print(f"{datetime.now():%H:%M:%S} {sentence}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
