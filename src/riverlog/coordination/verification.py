"""Asking the coordinator before a transaction begins in a partition (KIP-890), and waking those who wait.

What may begin is decided by the partition's own machine, `transactions/verification.py`.
"""

import asyncio
from collections.abc import Sequence
from functools import partial

from riverlog.coordination.futures import answered
from riverlog.coordination.limits import VERIFICATION_RETRY_SECONDS
from riverlog.model.errors import ErrorCode
from riverlog.model.transactions import VerifyTransaction
from riverlog.partitions.retry_later import RetryLater
from riverlog.transactions.verification import Question, VerificationRefused, Verified


class Verifying(RetryLater):
    """The coordinator is being asked whether a transaction may begin."""


def verify(port: VerifyTransaction, questions: Sequence[Question]) -> "asyncio.Future[None]":
    """Ask for all that are unanswered; when the future is done, whoever waited for it finds the answers to all, and a
    no only then.

    It is done at once where the coordinator says yes at once: nothing can come between that and the batch.
    """
    unanswered = [question for question in questions if not question.is_answered]
    asked = [_ask(port, question) for question in unanswered]
    if all(_is_yes(each) for each in asked):
        for question in unanswered:
            question.settle(ErrorCode.NONE)
        return answered(None)
    for question in questions:
        question.verifications.wait(question.verification)
    heard: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    asking = asyncio.ensure_future(_settle_all(port, unanswered, asked))
    asking.add_done_callback(partial(_wake, heard, questions))
    return heard


async def verify_one(port: VerifyTransaction, question: Question) -> Verified | VerificationRefused:
    """Ask, whatever was answered before, and return the answer; a no is kept for nobody else."""
    return question.settle(await _hear(port, question, _ask(port, question)))


def _ask(port: VerifyTransaction, question: Question) -> "asyncio.Future[ErrorCode]":
    """Ask, now; a coordinator that is here may have answered already."""
    producer = question.verification.producer
    return asyncio.ensure_future(
        port.verify(question.transactional_id, producer.id, producer.epoch, question.partition, adds=question.adds)
    )


def _is_yes(asked: "asyncio.Future[ErrorCode]") -> bool:
    return asked.done() and asked.exception() is None and asked.result() is ErrorCode.NONE


async def _hear(port: VerifyTransaction, question: Question, asked: "asyncio.Future[ErrorCode]") -> ErrorCode:
    """Wait for the answer, and ask again a little later where another one may come soon."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    while question.is_repeated(code := await asked, loop.time() - began):
        await asyncio.sleep(VERIFICATION_RETRY_SECONDS)
        asked = _ask(port, question)
    return code


async def _settle_all(
    port: VerifyTransaction, questions: Sequence[Question], asked: "Sequence[asyncio.Future[ErrorCode]]"
) -> None:
    codes = await asyncio.gather(*map(partial(_hear, port), questions, asked))
    for question, code in zip(questions, codes, strict=True):
        question.settle(code)


def _wake(heard: "asyncio.Future[None]", questions: Sequence[Question], asking: "asyncio.Task[None]") -> None:
    """Wake all who wait, in order, and behind the last of them forget a no."""

    def leave(_heard: "asyncio.Future[None]") -> None:
        for question in questions:
            question.verifications.leave(question.verification)

    heard.add_done_callback(leave)  # a future calls back in the order in which it was asked to
    if asking.cancelled():
        heard.cancel()
    elif (error := asking.exception()) is not None:
        heard.set_exception(error)
    else:
        heard.set_result(None)
