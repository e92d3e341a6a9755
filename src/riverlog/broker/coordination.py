"""How a request about a group reaches the group's coordinator, and how its reply becomes the answer.

The coordinator decides at once, in the order of arrival; the answer waits where it rests on records that are not
committed yet, or on other members. What keeps the coordinator from deciding is a code in the answer.
"""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from riverlog.broker.context import Answer, Context, Later
from riverlog.groups.commands import Client, GroupsCommand
from riverlog.model.access import Operation, ResourceType
from riverlog.model.errors import ErrorCode, Refusal

Response = TypeVar("Response")
Reply = TypeVar("Reply")


def ask_coordinator(
    context: Context,
    operation: Operation,
    group_id: str,
    command: GroupsCommand,
    *,
    answer: Callable[[Any], Response],
    refuse: Callable[[ErrorCode], Response],
) -> Answer[Response]:
    """Let the coordinator decide now, and give the answer that its reply makes, or the one for a refusal."""
    asked = submit(context, operation, group_id, command)
    if asked.done():
        return _answered(asked, context, answer, refuse)
    return Later(_answered_later(asked, context, answer, refuse))


def submit(context: Context, operation: Operation, group_id: str, command: GroupsCommand) -> "asyncio.Future[Any]":
    """Let the coordinator decide now if the client may ask it to; the future gives its reply or raises Refusal."""
    try:
        if not context.allows(operation, ResourceType.GROUP, group_id):
            raise Refusal(ErrorCode.GROUP_AUTHORIZATION_FAILED, f"Not allowed to use the group {group_id!r}.")
        asked = context.services.groups.submit(group_id, command)
    except Refusal as refusal:
        asked = asyncio.get_running_loop().create_future()
        asked.set_exception(refusal)
    asked.add_done_callback(_heard)
    return asked


def client_of(context: Context) -> Client:
    """Say who asks, as Kafka's tools show it."""
    return Client(context.client_id or "", f"/{context.client.principal.host}")


def _heard(asked: "asyncio.Future[Any]") -> None:
    """Take note of a refusal: the client may be gone, and one that nobody hears would be logged as a fault."""
    if not asked.cancelled():
        asked.exception()


def _answered(
    asked: "asyncio.Future[Any]",
    context: Context,
    answer: Callable[[Any], Response],
    refuse: Callable[[ErrorCode], Response],
) -> Response:
    try:
        return answer(asked.result())
    except Refusal as refusal:
        context.stats.failed(refusal.code)
        return refuse(refusal.code)


async def _answered_later(
    asked: "asyncio.Future[Any]",
    context: Context,
    answer: Callable[[Any], Response],
    refuse: Callable[[ErrorCode], Response],
) -> Response:
    await asyncio.wait([asked])
    return _answered(asked, context, answer, refuse)
