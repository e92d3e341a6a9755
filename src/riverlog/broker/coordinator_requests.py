"""How a request about a group or a transactional id reaches its coordinator, and how the reply becomes the answer.

The coordinator decides at once, in the order of arrival; the answer waits where it rests on records that are not
committed yet, or on other members. What keeps the coordinator from deciding is a code in the answer.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final, Protocol, TypeVar

from riverlog.broker.requests.context import Context, HandlerResult, Later
from riverlog.coordination.futures import concluded, refused
from riverlog.groups.commands import MemberClient, OffsetToCommit
from riverlog.groups.records import GroupFact
from riverlog.metadata.image import TopicImage
from riverlog.model.access import Operation, ResourceType
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import LeaderEpoch, Offset
from riverlog.model.machine import Command
from riverlog.observe.logging import get_logger

Response = TypeVar("Response")
Reply = TypeVar("Reply")

_LOG: Final = get_logger("riverlog.groups")


class CommittedEntry(Protocol):
    """A partition in any request that commits offsets."""

    partition_index: int
    committed_offset: int
    committed_leader_epoch: int
    committed_metadata: str | None


def offset_to_commit(topic: TopicImage, entry: CommittedEntry) -> OffsetToCommit:
    """Return what a request's entry asks the coordinator to remember."""
    return OffsetToCommit(
        topic.name,
        entry.partition_index,
        Offset(entry.committed_offset),
        LeaderEpoch(entry.committed_leader_epoch),
        entry.committed_metadata,
        topic.id,
    )


def refused_commit(code: ErrorCode) -> ErrorCode:
    """Name what cannot be written down as Kafka does where it is offsets."""
    return ErrorCode.INVALID_COMMIT_OFFSET_SIZE if code is ErrorCode.UNKNOWN_SERVER_ERROR else code


def ask_coordinator(
    context: Context,
    operation: Operation,
    group_id: str,
    command: Command[GroupFact, Reply],
    *,
    answer: Callable[[Reply], Response],
    refuse: Callable[[ErrorCode], Response],
) -> HandlerResult[Response]:
    """Submit a command to the group's coordinator now; return the response made of its reply, or of its refusal."""
    return when_decided(ask_group(context, operation, group_id, command), context, answer=answer, refuse=refuse)


def ask_group(
    context: Context, operation: Operation, group_id: str, command: Command[GroupFact, Reply]
) -> "asyncio.Future[Reply]":
    """Submit a command now if the client may; the future ends with the coordinator's its reply or a Refusal."""
    if not context.allows(operation, ResourceType.GROUP, group_id):
        return refused(Refusal(ErrorCode.GROUP_AUTHORIZATION_FAILED, f"Not allowed to use the group {group_id!r}."))
    return context.services.groups.submit(group_id, command)


def when_decided(
    asked: "asyncio.Future[Reply]",
    context: Context,
    *,
    answer: Callable[[Reply], Response],
    refuse: Callable[[ErrorCode], Response],
) -> HandlerResult[Response]:
    """Return the answer that a coordinator's reply makes, or the one for a refusal, now or when it is there."""
    if asked.done():
        return _answered(asked, context, answer, refuse)
    return Later(concluded(asked, partial(_answered, context=context, answer=answer, refuse=refuse)))


def check_transactional_id(context: Context, transactional_id: str) -> None:
    """Refuse a client that may not write with the id, and an id that is none."""
    if not context.allows(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id):
        raise Refusal(
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, f"Not allowed to write with {transactional_id!r}."
        )
    if not transactional_id:
        raise Refusal(ErrorCode.INVALID_REQUEST, "A transactional id must not be empty.")


def ask_if_allowed(
    context: Context, transactional_id: str, ask: "Callable[[], asyncio.Future[Reply]]"
) -> "asyncio.Future[Reply]":
    """Ask if the client may write with the id; the future ends with the coordinator's reply or a Refusal."""
    try:
        check_transactional_id(context, transactional_id)
    except Refusal as refusal:
        return refused(refusal)
    return ask()


def known_since(first_version: int, code: ErrorCode, context: Context) -> ErrorCode:
    """Return the code, and to clients from before PRODUCER_FENCED was invented the one that they know instead."""
    is_too_new = code is ErrorCode.PRODUCER_FENCED and context.version < first_version
    return ErrorCode.INVALID_PRODUCER_EPOCH if is_too_new else code


def client_of(context: Context) -> MemberClient:
    """Describe who asks, as Kafka's tools show it."""
    return MemberClient(context.client_id or "", f"/{context.client.principal.host}")


def tell_reason(event: str, context: Context, group_id: str, member_id: str, reason: str) -> None:
    """Log for the operator why a member says that it came or went."""
    _LOG.info(event, group=group_id, member=member_id, client=context.client_id, reason=reason)


def _answered(
    asked: "asyncio.Future[Reply]",
    context: Context,
    answer: Callable[[Reply], Response],
    refuse: Callable[[ErrorCode], Response],
) -> Response:
    try:
        return answer(asked.result())
    except Refusal as refusal:
        context.stats.failed(refusal.code)
        return refuse(refusal.code)
