"""What holds for all tests: coroutines run on virtual time, none fails because the machine is busy, and what is not run
is noted."""

import inspect
import os
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support import not_run, virtual_time

settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="write what is said now into scenarios and transcripts")


@pytest.fixture
def rewrite(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--rewrite"))


def pytest_configure(config: pytest.Config) -> None:
    """Note what is not run where `make test` asks for it."""
    if folder := os.environ.get(not_run.VARIABLE):
        config.pluginmanager.register(not_run.NotRun(Path(folder)))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine on virtual time."""
    if not inspect.iscoroutinefunction(pyfuncitem.function):
        return None
    named = inspect.signature(pyfuncitem.function).parameters
    virtual_time.run(pyfuncitem.function(**{name: pyfuncitem.funcargs[name] for name in named}))
    return True
