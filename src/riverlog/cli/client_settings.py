"""Between commands and the client: settings by Kafka's names, and the client's errors as sentences."""

import asyncio
import inspect
import signal
import types
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any, Final, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from riverlog.cli.terminal.exits import CommandError, ExitCode, usage_error
from riverlog.cli.terminal.expressions import pairs
from riverlog.cli.terminal.options import INT32_MAX
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import Address

T = TypeVar("T")

KAFKA_NAMES: Final = {
    "batch.size": "batch_bytes_max",
    "buffer.memory": "buffer_bytes_max",
    "compression.type": "compression",
    "enable.idempotence": "idempotent",
    "max.block.ms": "block_ms_max",
    "max.request.size": "request_bytes_max",
    "request.timeout.ms": "timeout_ms",
}
"""Kafka's names for settings that the client names otherwise."""


def run(work: Coroutine[Any, Any, T], runner: Callable[[Coroutine[Any, Any, T]], T] = asyncio.run) -> T:
    """Run a command's conversation with a cluster; what the cluster refuses becomes a sentence.

    SIGTERM ends it as Ctrl-C does: what is open is closed, and a member leaves its group.
    """
    with client_errors():
        try:
            return runner(_until_terminated(work))
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None


@contextmanager
def client_errors() -> Iterator[None]:
    """Turn what the cluster refuses into a sentence."""
    from riverlog.client.errors import KafkaError, TimedOut, Unreachable

    try:
        yield
    except Unreachable as error:
        sentence = f"{error.message} `riverlog doctor` looks closer; -b HOST:PORT names another broker"
        raise CommandError(sentence, ExitCode.UNREACHABLE) from error
    except TimedOut as error:
        raise CommandError(f"{error.message}; `riverlog doctor` looks closer", ExitCode.UNREACHABLE) from error
    except KafkaError as error:
        unknown = error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        hint = "; `riverlog topics list` shows what there is" if unknown else ""
        raise CommandError(f"{error}{hint}", ExitCode.REFUSED) from error


async def _until_terminated(work: Coroutine[Any, Any, T]) -> T:
    working = asyncio.current_task()
    assert working is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, working.cancel)
    return await work


def addresses(bootstrap: str) -> tuple[Address, ...]:
    """Read what was given with -b."""
    from riverlog.model.addresses import parse_addresses

    try:
        return parse_addresses(bootstrap)
    except ValueError as error:
        raise usage_error(str(error)) from error


def new_client(
    client: Callable[..., T], bootstrap: str, texts: Sequence[str], fixed: Mapping[str, Any] | None = None
) -> T:
    """Create a client; `texts` are what was given with -X and win over `fixed`, the options that have a flag."""
    try:
        return client(bootstrap, **{**(fixed or {}), **client_settings(client, texts)})
    except ValueError as error:
        raise usage_error(str(error)) from error


def client_settings(client: Callable[..., object], texts: Sequence[str]) -> dict[str, Any]:
    """Turn `-X linger.ms=5` into the keyword arguments of a client class, by its signature."""
    return settings_of([client], texts)[0] if texts else {}


def settings_of(clients: Sequence[Callable[..., object]], texts: Sequence[str]) -> list[dict[str, Any]]:
    """Return for each client the settings that it has; refuse one that none of them has."""
    known = [_known(client) for client in clients]
    chosen: list[dict[str, Any]] = [{} for _ in clients]
    for name, text in pairs(texts, option="-X").items():
        if not any(name in names for names in known):
            raise usage_error(f"the client has no setting '{name}'; it has {', '.join(sorted({*chain(*known)}))}")
        for settings, names in zip(chosen, known, strict=True):
            if name in names:
                parameter, hint = names[name]
                settings[parameter] = _value(name, text, hint)
    return chosen


def _known(client: Callable[..., object]) -> dict[str, tuple[str, Any]]:
    """List a client's settings by every name they have: the parameter and its type."""
    hints = get_type_hints(client.__init__ if inspect.isclass(client) else client)
    parameters = list(inspect.signature(client).parameters)[1:]
    known = {name.replace("_", "."): name for name in parameters if _settable(hints[name])}
    known |= {kafka: ours for kafka, ours in KAFKA_NAMES.items() if ours in parameters}
    return {name: (parameter, hints[parameter]) for name, parameter in known.items()}


def _settable(hint: Any) -> bool:
    """Return whether a parameter can be written as text."""
    return bool({bool, int, float, str} & {*_kinds(hint)}) or get_origin(hint) is Literal


def _kinds(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def _value(name: str, text: str, hint: Any) -> Any:
    for kind in (bool, int, float):
        if kind in _kinds(hint):
            return _parsed(name, text, kind)
    return text


def _parsed(name: str, text: str, kind: type) -> bool | int | float:
    if kind is bool:
        if text.lower() in ("true", "false"):
            return text.lower() == "true"
        raise usage_error(f"-X {name} takes true or false, not '{text}'")
    try:
        number = int(text) if kind is int else float(text)
    except ValueError:
        raise usage_error(f"-X {name} takes a number, not '{text}'") from None
    if not -INT32_MAX <= number <= INT32_MAX:
        raise usage_error(f"-X {name} takes a number up to {INT32_MAX}, not '{text}'")
    return number
