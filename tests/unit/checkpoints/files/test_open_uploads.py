"""Which upload makes room."""

import asyncio
from contextlib import ExitStack

from riverlog.checkpoints.files.open_uploads import Uploads, made_room
from riverlog.checkpoints.limits import CHECKPOINT_UPLOAD_REST_SECONDS


async def rest(uploads: Uploads, client: str, gone: list[str], name: str) -> None:
    try:
        async with asyncio.timeout(None) as ending:
            with uploads.resting(client, ending):
                await asyncio.Event().wait()
    except TimeoutError:
        gone.append(name)


async def test_the_one_that_rested_longest_of_the_client_with_most_goes_first() -> None:
    uploads, gone = Uploads(), list[str]()
    tasks = []
    for client, name in (("a", "a1"), ("b", "b1"), ("b", "b2"), ("c", "c1")):
        tasks.append(asyncio.create_task(rest(uploads, client, gone, name)))
        await asyncio.sleep(0.1)
    assert not uploads.make_room()
    await asyncio.sleep(CHECKPOINT_UPLOAD_REST_SECONDS)
    for _ in range(4):
        assert uploads.make_room()
        await asyncio.sleep(0.1)
    assert gone == ["b1", "a1", "b2", "c1"]
    assert not uploads.make_room()
    await asyncio.wait(tasks)


async def test_one_that_goes_is_not_asked_twice() -> None:
    uploads = Uploads()
    with ExitStack() as stack:
        endings = [await stack_of(stack, uploads) for _ in range(2)]
        await asyncio.sleep(CHECKPOINT_UPLOAD_REST_SECONDS)
        assert uploads.make_room()
        assert uploads.make_room()
        assert not uploads.make_room()
        assert all(ending.when() is not None for ending in endings)
        for ending in endings:
            ending.reschedule(None)


async def stack_of(stack: ExitStack, uploads: Uploads) -> asyncio.Timeout:
    ending = asyncio.timeout(None)
    await ending.__aenter__()
    stack.enter_context(uploads.resting("a", ending))
    return ending


def test_who_made_room_may_try_again() -> None:
    assert made_room().is_for_now
