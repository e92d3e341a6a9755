"""A program that is one attempt of a task: it joins a batch, writes its part, and says who it was.

It waits for a line of input after each step, so that whoever started it can kill it, or let it go on when all is over.
"""

import argparse
import asyncio
import json
import sys

from riverlog import KafkaError, Member, NewRecord
from riverlog.client.producer.shared_transactions import SharedBatch


async def main() -> None:
    """Write a part of a batch, step by step."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--batch", type=json.loads, required=True)
    parser.add_argument("--task", type=int, required=True)
    parser.add_argument("--attempt", type=int, required=True)
    parser.add_argument("--records", type=int, required=True)
    given = parser.parse_args()
    batch = SharedBatch(**given.batch)
    async with Member(given.bootstrap, batch, task=given.task, attempt=given.attempt) as member:
        say("joined")
        half = given.records // 2
        try:
            await member.write(part(batch, given.task, 0, half))
            await member.flush()
            say("wrote")
            await member.write(part(batch, given.task, half, given.records))
            membership = await member.finish()
        except KafkaError as problem:
            say(problem.code.name)
        else:
            say(json.dumps(membership.producer))


def part(batch: SharedBatch, task: int, first: int, end: int) -> list[NewRecord]:
    """Return records that every attempt of the task would write alike."""
    return [NewRecord("out", f"{batch.number} {task} {number}") for number in range(first, end)]


def say(line: str) -> None:
    print(line, flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    asyncio.run(main())
