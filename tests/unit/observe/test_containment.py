"""What nobody expected is told to the loop, and whoever works for ever begins again."""

import asyncio

from riverlog.observe.containment import contained, keep_running
from riverlog.observe.limits import BACKGROUND_PAUSE_SECONDS


async def test_an_exception_is_told_and_survived() -> None:
    told: list[tuple[str, BaseException]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: told.append((context["message"], context["exception"])))
    error = ValueError("not thought of")
    contained("sums", error)
    assert told == [("sums", error)]


async def test_work_begins_again_after_a_pause_until_it_ends_by_itself() -> None:
    told: list[str] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: told.append(context["message"]))
    began: list[float] = []

    async def work() -> None:
        began.append(loop.time())
        if len(began) < 3:
            raise ExceptionGroup("of a task group", [ValueError("not thought of")])

    await keep_running("sums", work)
    assert told == ["sums", "sums"]
    assert [round(at - began[0], 6) for at in began] == [0, BACKGROUND_PAUSE_SECONDS, 2 * BACKGROUND_PAUSE_SECONDS]
