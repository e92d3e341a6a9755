"""The settings of clients, by Kafka's names: what -X, a file and a profile say, as the arguments of a client here."""

import inspect
import re
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from riverlog.cli.kafka_clients import BOOTSTRAP, CLASSES, PARAMETERS, WITHOUT_MEANING, in_kafkas_names
from riverlog.cli.terminal.exits import usage_error
from riverlog.cli.terminal.expressions import pairs
from riverlog.cli.terminal.options import INT32_MAX
from riverlog.cli.terminal.suggestions import did_you_mean
from riverlog.cli.terminal.text_files import text_of
from riverlog.model.ids import Address
from riverlog.model.properties import read_properties
from riverlog.model.setting import BadSetting

T = TypeVar("T")

SECURITY: Final = ("security.", "ssl.", "sasl.")


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """What clients are given: `typed` on the command line, where a mistake is one, and `filed` in a file before it."""

    typed: Mapping[str, str] = field(default_factory=dict)
    filed: Mapping[str, str] = field(default_factory=dict)

    @property
    def all(self) -> dict[str, str]:
        """Return all of them; what was typed wins."""
        return {**self.filed, **self.typed}


def typed_settings(texts: Sequence[str]) -> dict[str, str]:
    """Read what was given with -X; refuse what is no setting of any client of Kafka."""
    typed = pairs(texts, option="-X")
    for name in typed:
        if not _known(name):
            names = [*PARAMETERS, *WITHOUT_MEANING, *BOOTSTRAP]
            hint = did_you_mean(name, names) or "; Kafka's documentation of its clients has their names"
            raise usage_error(f"-X: Kafka's clients have no setting {name}{hint}")
    return typed


def settings_in_file(path: str) -> dict[str, str]:
    """Read a file of settings, as Kafka's tools take it; what means nothing here is named on standard error."""
    try:
        found = read_properties(text_of(path))
    except BadSetting as error:
        raise usage_error(f"{path} cannot be read as a file of settings: {error}") from error
    if unused := [name for name in found if name in WITHOUT_MEANING or not _known(name)]:
        print(f"riverlog: {path}: passed over, without meaning here: {', '.join(unused)}", file=sys.stderr)
    return {name: value for name, value in found.items() if name not in unused}


def addresses(bootstrap: str) -> tuple[Address, ...]:
    """Read what was given with -b."""
    from riverlog.model.addresses import parse_addresses

    try:
        return parse_addresses(bootstrap)
    except ValueError as error:
        raise usage_error(str(error)) from error


def new_client(
    client: Callable[..., T],
    bootstrap: str,
    settings: ClientSettings = ClientSettings(),
    fixed: Mapping[str, Any] | None = None,
) -> T:
    """Create a client; its settings win over `fixed`, the options that have a flag."""
    return created(client, bootstrap, {**(fixed or {}), **settings_of([client], settings)[0]})


def created(client: Callable[..., T], bootstrap: str, arguments: Mapping[str, Any]) -> T:
    """Create a client; what it refuses becomes a sentence."""
    try:
        return client(bootstrap, **arguments)
    except ValueError as error:
        raise usage_error(in_kafkas_names(str(error))) from error


def settings_of(clients: Sequence[Callable[..., object]], settings: ClientSettings) -> list[dict[str, Any]]:
    """Return for each client the arguments that it has; refuse what was typed and is for none of them."""
    if not settings.all:
        return [{} for _ in clients]
    chosen = [_arguments(client, settings.all) for client in clients]
    used = {name for _, names in chosen for name in names}
    for name in settings.typed:
        if name not in used and not name.startswith(SECURITY) and name not in BOOTSTRAP:
            kind = "is a setting of other clients" if name in PARAMETERS else "means nothing here"
            raise usage_error(f"-X {name} {kind}; leave it out")
    return [arguments for arguments, _ in chosen]


def _arguments(client: Callable[..., object], settings: Mapping[str, str]) -> tuple[dict[str, Any], set[str]]:
    """Return the arguments of a client by its signature, and the names of the settings that they come from."""
    hints = get_type_hints(client.__init__ if inspect.isclass(client) else client)
    parameters = list(inspect.signature(client).parameters)[1:]
    arguments: dict[str, Any] = {}
    used: set[str] = set()
    for name, text in settings.items():
        parameter = PARAMETERS.get(name, "")
        if parameter == "request_timeout_ms" and parameter not in parameters:
            parameter = "timeout_ms"
        if parameter in parameters and _is_meant(name, settings):
            arguments[parameter] = _value(name, text, hints[parameter])
            used.add(name)
    if "security" in parameters and any(name.startswith(SECURITY) for name in settings):
        from riverlog.client.network.security import Security

        try:
            arguments["security"] = Security.from_settings(settings)
        except ValueError as error:
            raise usage_error(str(error)) from error
    return arguments, used


def _is_meant(name: str, settings: Mapping[str, str]) -> bool:
    """Return whether a setting counts: the level of a compression does where that compression is chosen."""
    level = re.fullmatch(r"compression\.(\w+)\.level", name)
    return level is None or settings.get("compression.type") == level[1]


def _known(name: str) -> bool:
    return name in PARAMETERS or name in WITHOUT_MEANING or name in BOOTSTRAP or name.startswith(SECURITY)


def _kinds(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def _value(name: str, text: str, hint: Any) -> Any:
    for kind in (bool, int, float):
        if kind in _kinds(hint):
            return _parsed(name, text, kind)
    literals = [each for each in _kinds(hint) if get_origin(each) is Literal]
    choices = dict.fromkeys(str(choice) for each in literals for choice in get_args(each))
    value = CLASSES.get(text.rpartition(".")[2], text)
    if choices and value not in choices:
        raise usage_error(f"{name} takes {', '.join(choices)}, not '{text}'")
    return value


def _parsed(name: str, text: str, kind: type) -> bool | int | float:
    if kind is bool:
        if text.lower() in ("true", "false"):
            return text.lower() == "true"
        raise usage_error(f"{name} takes true or false, not '{text}'")
    try:
        number = int(text) if kind is int else float(text)
    except ValueError:
        raise usage_error(f"{name} takes a number, not '{text}'") from None
    if not -INT32_MAX <= number <= INT32_MAX:
        raise usage_error(f"{name} takes a number up to {INT32_MAX}, not '{text}'")
    return number
