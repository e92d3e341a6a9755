"""`demo`: the examples that come with riverlog, run as they are or copied to be changed."""

import ast
import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final, NamedTuple

import click

import riverlog
from riverlog.cli.terminal.exits import CommandError, ExitCode, usage_error
from riverlog.cli.terminal.options import Argument, output_option
from riverlog.cli.terminal.render import OutputFormat, Row, emit_table
from riverlog.cli.terminal.suggestions import did_you_mean


class Story(NamedTuple):
    """An example that starts a node and says what it does; the modules that it needs, and the extra that has them."""

    modules: tuple[str, ...] = ()
    extra: str = ""
    takes_folder: bool = False


STORIES: Final = {
    "revenue": Story(("pyspark",), "spark", takes_folder=True),
    "invoices": Story(),
    "orders": Story(("confluent_kafka", "kafka"), "clients"),
}
"""The other examples are pipelines, for `riverlog pipelines run`."""


@click.command
@click.argument(
    "name",
    cls=Argument,
    required=False,
    metavar="NAME",
    help="The example. Without it: revenue, or invoices where Spark is not installed.",
)
@click.option("--data", metavar="DIR", help="The folder for the data of revenue (./riverlog-demo).")
@click.option("--list", "lists", is_flag=True, help="List the examples, and run none.")
@click.option("--copy", "target", type=click.Path(path_type=Path), metavar="DIR", help="Copy the examples to a folder.")
@output_option
def demo(name: str | None, data: str | None, lists: bool, target: Path | None, output: OutputFormat | None) -> int:
    """Run an example, which starts a node and explains each step.

    revenue adds up orders by window on Spark, exactly once; run it again, and it continues where it stopped. invoices
    writes one invoice for each order, although the worker fails in the middle. orders sends records from one Kafka
    client to another.
    """
    folder = examples()
    if lists:
        emit_table(
            [_row(path) for path in sorted(folder.glob("*.py"))], output, ["example", "run with", "what it shows"]
        )
        return ExitCode.DONE
    if target is not None:
        copied = [shutil.copy(path, _made(target)) for path in sorted(folder.glob("*.py"))]
        print(f"Copied {len(copied)} examples to {target}")
        return ExitCode.DONE
    chosen = name or ("revenue" if _is_there("pyspark") else "invoices")
    story = _story(chosen, folder)
    if data is not None and not story.takes_folder:
        raise usage_error(f"--data is for revenue: {chosen} keeps nothing")
    command = [sys.executable, str(folder / f"{chosen}.py"), *(["--data", data] if data is not None else [])]
    return subprocess.run(command, check=False).returncode


def examples() -> Path:
    """Return the folder of the examples: in the package, or beside it in a clone."""
    package = Path(riverlog.__file__).parent
    for folder in (package / "examples", package.parents[1] / "examples"):
        if folder.is_dir():
            return folder
    raise CommandError("the examples did not come with this installation; install riverlog from its wheel, or clone it")


def _story(name: str, folder: Path) -> Story:
    """Return an example that can be run; refuse one that is not there, or for which something is missing."""
    if name not in STORIES:
        if (folder / f"{name}.py").is_file():
            raise usage_error(
                f"{name} is a pipeline for your own topics; --copy DIR copies it, `riverlog pipelines run` runs it"
            )
        raise usage_error(f"there is no example {name}{did_you_mean(name, STORIES) or '; --list shows what there is'}")
    story = STORIES[name]
    if missing := [module for module in story.modules if not _is_there(module)]:
        raise CommandError(f"{name} needs {missing[0]}, which is not installed; pip install 'riverlog[{story.extra}]'")
    return story


def _is_there(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _row(path: Path) -> Row:
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    story = path.stem in STORIES
    return {
        "example": path.stem,
        "run with": f"riverlog demo {path.stem}" if story else f"riverlog pipelines run {path.name}",
        "shows": " ".join(text.partition("\n\n")[0].split()),
    }
