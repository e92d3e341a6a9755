"""Finds the pipelines that a file defines: in variables, or by a function `pipeline` or `main` that returns them.

The file is run once, as an import would, so what stands behind `if __name__ == "__main__"` is for those who start it
with python. Functions in it travel to the workers of Spark by value: nothing of the file need be installed there.
"""

import sys
import traceback
from collections.abc import Iterable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final

import riverlog
from riverlog.spark.error_words import reason

if TYPE_CHECKING:
    from riverlog.pipelines.pipeline import Pipeline

FUNCTIONS: Final = ("pipeline", "main")
_PACKAGE: Final = Path(riverlog.__file__).resolve().parent


class NotLoaded(Exception):
    """A file defines no pipelines; the message says why, and what to do."""


def load(file: Path) -> "list[Pipeline]":
    """Run a file, and return its pipelines in the order in which it defines them."""
    module = run_file(file)
    found = pipelines_in(vars(module).values())
    if not found:
        found = _called(module, file)
    names = [output.name for pipeline in found for output in pipeline.outputs]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise NotLoaded(f"{file} has two outputs called {twice[0]}; give the pipelines different names")
    if empty := [pipeline.name for pipeline in found if not pipeline.outputs]:
        raise NotLoaded(f"the pipeline {empty[0]} in {file} has no output; write a stream with to('topic')")
    return found


def run_file(file: Path) -> ModuleType:
    """Run a file as a module of its name; NotLoaded says what went wrong, and in which line."""
    if not file.is_file():
        raise NotLoaded(f"there is no file {file}; name one that defines a Pipeline")
    name = file.stem if file.stem.isidentifier() and file.stem not in sys.modules else f"riverlog_file_{file.stem}"
    spec = spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise NotLoaded(f"{file} is not a file of Python; its name ends in .py")
    module = module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(file.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except Exception as problem:
        del sys.modules[name]
        raise NotLoaded(where(problem, file)) from problem
    finally:
        sys.path.pop(0)
    _pickle_by_value(module)
    return module


def pipelines_in(values: Iterable[object]) -> "list[Pipeline]":
    """Return the pipelines among some values, each once."""
    from riverlog.pipelines.pipeline import Pipeline

    return list({id(value): value for value in values if isinstance(value, Pipeline)}.values())


def check_syntax(file: Path) -> None:
    """Read a file without running it; NotLoaded says in which line it is no Python."""
    if not file.is_file():
        raise NotLoaded(f"there is no file {file}; name one that defines a Pipeline")
    try:
        compile(file.read_bytes(), str(file), "exec")
    except (SyntaxError, ValueError) as problem:
        raise NotLoaded(where(problem, file)) from problem


def where(problem: BaseException, file: Path) -> str:
    """Describe what went wrong, and in which line of the file; its class, too, unless it is a sentence of ours."""
    if isinstance(problem, SyntaxError):
        return f"{problem.filename}, line {problem.lineno}: {problem.msg}"
    frames = traceback.extract_tb(problem.__traceback__)
    lines = [frame.lineno for frame in frames if Path(frame.filename).resolve() == file.resolve()]
    position = f"{file}, line {lines[-1]}" if lines else str(file)
    words = reason(str(problem))
    if words and isinstance(problem, ValueError) and _PACKAGE in Path(frames[-1].filename).parents:
        return f"{position}: {words}"
    return f"{position}: {type(problem).__name__}: {words}" if words else f"{position}: {type(problem).__name__}"


def _called(module: ModuleType, file: Path) -> "list[Pipeline]":
    function = next((vars(module)[name] for name in FUNCTIONS if callable(vars(module).get(name))), None)
    if function is None:
        raise NotLoaded(
            f"{file} defines no pipeline; assign one to a variable, revenue = Pipeline('revenue', …), or define a "
            "function pipeline() that returns it"
        )
    try:
        given = function()
    except Exception as problem:
        raise NotLoaded(where(problem, file)) from problem
    found = pipelines_in(given if isinstance(given, Iterable) else [given])
    if not found:
        raise NotLoaded(
            f"{function.__name__}() in {file} returns no pipeline; it must return the Pipeline that it defines"
        )
    return found


def _pickle_by_value(module: ModuleType) -> None:
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]  # Spark vendors it as it is
