"""What this room needs beyond riverlog itself; what is missing is said in one sentence with the command to get it."""

import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Final

INSTALL: Final = {
    "pyarrow": "pip install 'riverlog[scan]'",
    "pandas": "pip install pandas",
    "polars": "pip install polars",
    "pyspark": "pip install 'riverlog[spark]'",
    "duckdb": "pip install duckdb",
}


class MissingExtra(ImportError):
    """A library is not installed that the call needs."""

    def __init__(self, module: str) -> None:
        super().__init__(f"{module} is not installed; run: {INSTALL[module]}", name=module)


def need(module: str) -> ModuleType:
    """Import a library, or say how it is installed."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise MissingExtra(module) from None


def has(module: str) -> bool:
    """Return whether a library is installed, without importing it."""
    return module in sys.modules or find_spec(module) is not None
