"""What a cluster refuses, as one sentence for the person who asked: what, why, and what to do.

The client's sentences are for programs in Python; here its arguments get the names that Kafka's clients have for
them, and a code gets the advice that goes with it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from riverlog.cli.kafka_clients import in_kafkas_names
from riverlog.cli.terminal.exits import CommandError, ExitCode, usage_error
from riverlog.cli.terminal.suggestions import did_you_mean
from riverlog.model.errors import ErrorCode

if TYPE_CHECKING:
    from riverlog import Admin, KafkaError

_LIST_TOPICS: Final = "`riverlog topics list` shows what there is"
_DENIED: Final = "ask whoever administers the cluster for the permission, or log in as another user"
_LATER: Final = "try again in a moment"
_SETTINGS: Final = "`riverlog config explain` lists every setting"

ADVICE: Final = {
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: _DENIED,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: _LATER,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: _LATER,
    ErrorCode.CONCURRENT_TRANSACTIONS: _LATER,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: _DENIED,
    ErrorCode.GROUP_ID_NOT_FOUND: "`riverlog groups list` shows what there is",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "stop the members first",
    ErrorCode.ILLEGAL_SASL_STATE: "leave out security.protocol, or name the address of another listener with -b",
    ErrorCode.INVALID_CONFIG: _SETTINGS,
    ErrorCode.INVALID_GROUP_ID: "choose a name that is not empty",
    ErrorCode.INVALID_PARTITIONS: "`riverlog topics describe` shows how many there are",
    ErrorCode.INVALID_REPLICATION_FACTOR: "`riverlog cluster status` lists the brokers",
    ErrorCode.INVALID_REGULAR_EXPRESSION: "check its brackets and backslashes",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "choose another one",
    ErrorCode.KAFKA_STORAGE_ERROR: "`riverlog cluster status` shows the log directories",
    ErrorCode.LEADER_NOT_AVAILABLE: "`riverlog cluster under-replicated` shows what else has none",
    ErrorCode.MESSAGE_TOO_LARGE: "send smaller records, or raise max.message.bytes of the topic and "
    "-X max.request.size",
    ErrorCode.NON_EMPTY_GROUP: "stop the members first",
    ErrorCode.NOT_ENOUGH_REPLICAS: "`riverlog cluster under-replicated` shows which are missing",
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: "`riverlog cluster under-replicated` shows which are missing",
    ErrorCode.SASL_AUTHENTICATION_FAILED: "-X security.protocol=…, -X sasl.mechanism=… and --command-config FILE say "
    "how to log in",
    ErrorCode.THROTTLING_QUOTA_EXCEEDED: _LATER,
    ErrorCode.TOPIC_ALREADY_EXISTS: "choose another name, or add --if-not-exists to leave it as it is",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: _DENIED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: _DENIED,
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "`riverlog transactions list` shows what there is",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: _LIST_TOPICS,
    ErrorCode.UNSUPPORTED_VERSION: "ask a newer broker",
}
"""What to do about a code."""

MISNAMED: Final = frozenset(
    {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.INVALID_TOPIC_EXCEPTION}
)
"""The codes where a name was perhaps misspelt, or cannot be one."""

_TOPIC_NAME: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")

_SUBJECT: Final = re.compile(r"((?:settings of )?(?:\w+ '([^']*)'|all brokers|broker \d+)): (.*)", re.DOTALL)
_FOR_PROGRAMMERS: Final = re.compile(r"[.;] [^.;]*\bawait\b.*")


@contextmanager
def client_errors() -> Iterator[None]:
    """Turn what the cluster refuses into a sentence."""
    from riverlog.client.arguments import BadArgument
    from riverlog.client.errors import KafkaError, TimedOut, Unreachable

    try:
        yield
    except BadArgument as error:
        raise usage_error(str(error)) from error
    except (Unreachable, TimedOut) as error:
        raise CommandError(_unanswered(error.message), ExitCode.UNREACHABLE) from error
    except KafkaError as error:
        raise CommandError(sentence_of(error), ExitCode.REFUSED) from error


def raise_failures(failures: "Mapping[str, KafkaError]", total: int) -> None:
    """Raise the failure of one thing as it is, or those of several together; nothing where there are none."""
    from riverlog.client.errors import PartlyFailed

    if failures:
        raise next(iter(failures.values())) if total == 1 else PartlyFailed(failures, total)


def sentence_of(error: "KafkaError") -> str:
    """Return what was refused and why, with what to do about it."""
    from riverlog.client.errors import PartlyFailed

    what = _what(error.message)
    if isinstance(error, PartlyFailed):
        counted = error.message.partition(": ")[0]
        what = f"{counted}: {', '.join(_what(each.message) for each in error.failures.values())}"
    known = _SETTINGS if what.startswith("settings of ") else ADVICE.get(error.code)
    advice = known or f"Kafka calls this {error.code.name}"
    return f"{what}{' ' if what.endswith('?') else '; '}{advice}"


def _what(message: str) -> str:
    """Return what the client says, without what is for programmers, and with its subject once."""
    what = _FOR_PROGRAMMERS.sub("", in_kafkas_names(message)).rstrip(".")
    subject = _SUBJECT.fullmatch(what)
    if subject is None:
        return what
    why = subject[3][:1].lower() + subject[3][1:]
    named = subject[2] is not None and f"'{subject[2]}'" in why  # the cluster's own sentence names it as well
    return why if named else f"{subject[1]}: {why}"


def _unanswered(message: str) -> str:
    what = in_kafkas_names(message).removesuffix(" Is one running, and is the address right?").rstrip(".")
    return f"{what}; start one with `riverlog dev`, name another with -b HOST:PORT, or ask `riverlog doctor`"


async def missing(
    admin: "Admin", error: "KafkaError", topics: Iterable[str], groups: Iterable[str]
) -> "KafkaError | CommandError":
    """Return what to raise for an error: a better sentence where one of these topics or groups is not there."""
    match error.code:
        case ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            known = [topic.name for topic in await admin.list_topics(internal=True)]
            return not_there("topic", topics, known) or error
        case ErrorCode.INVALID_TOPIC_EXCEPTION:
            return next(filter(None, map(no_topic_name, topics)), error)
        case ErrorCode.GROUP_ID_NOT_FOUND:
            known = [group.name for group in await admin.list_groups()]
            return not_there("group", groups, known) or error
        case _:
            return error


def no_topic_name(name: str) -> CommandError | None:
    """Return what is wrong with a name that no topic can have; some clusters refuse it with a code alone."""
    if _TOPIC_NAME.fullmatch(name):
        return None
    rule = "it may hold up to 249 ASCII letters, digits, '.', '_' and '-'"
    return CommandError(f"'{name}' cannot be a topic's name: {rule}; choose another one", ExitCode.REFUSED)


def not_there(noun: str, wanted: Iterable[str], known: "list[str]") -> CommandError | None:
    """Return what to say about those that are not among the known; None where all are."""
    absent = [name for name in wanted if name not in known]
    if not absent:
        return None
    if len(absent) > 1:
        what = f"there are no {noun}s {', '.join(absent)}; "
    else:
        what = f"there is no {noun} {absent[0]}{did_you_mean(absent[0], known) or ';'} "
    return CommandError(f"{what}`riverlog {noun}s list` shows what there is", ExitCode.REFUSED)
