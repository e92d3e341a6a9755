"""The README, walked as a newcomer does: each block with what must come out of it."""

import re
import shutil
from collections.abc import Mapping
from typing import Final

from tests.support.node import Node
from tests.support.printed import Block, Walk, blocks

EXPECTED: Final[Mapping[str, tuple[str, ...]]] = {
    "riverlog topics create orders": (r"2 lamps", r"Partition 2: Leader=1, ISR=\[1\]"),
    "from confluent_kafka": (r"^b'",),
    "from kafka": (r"b'ada'.*\n(.*\n)*.*b'ada'",),
    "from aiokafka": (r"RecordMetadata\(topic='orders'",),
    "kcat ": (r"linus -> 2 desks",),
    "from riverlog import Consumer": (r"b'1 lamp'",),
    "transactional_id": ("^$",),
    "riverlog.scan(": ("value: binary",),
    "riverlog groups list": (r"Group billing: State=Empty",),
    "/metrics": ("riverlog_info{version=",),
    "riverlog topics create sales": (r"\"records\": ?4",),
    "import riverlog.spark": ("^$",),
    "riverlog consume revenue": (r"\"cents\":1500", r"\"cents\":500", r"Pipeline revenue: State=stopped"),
}
"""By what a block is known: what it prints, as regular expressions."""


def usual_addresses(node: Node) -> dict[str, str]:
    """Return where a node is, by the addresses that documents print."""
    return {
        "127.0.0.1:9092": node.bootstrap,
        "127.0.0.1:9644": node.addresses["metrics"].removeprefix("http://"),
        "127.0.0.1:9870": node.addresses["checkpoints"].removeprefix("webhdfs://"),
    }


def walk(walker: Walk, section: str) -> set[str]:
    """Run all blocks of a section but those that only show something, and return by what they are known."""
    done = set()
    for block in blocks("README.md", section):
        if not is_run(block):
            continue
        known = [each for each in EXPECTED if each in block.text]
        assert known, f"nobody says what comes of this: {block.text}"
        if known[0] == "kcat " and not shutil.which("kcat"):
            continue
        printed = walker.run(block)
        for pattern in EXPECTED[known[0]]:
            assert re.search(pattern, printed, re.MULTILINE), f"{block.text}\n{printed}"
        done.add(known[0])
    return done


def is_run(block: Block) -> bool:
    """Return whether a block is to be run here: the node is started, and pytest has the fixture."""
    return block.language in ("sh", "python") and block.text != "riverlog dev\n" and "riverlog_broker" not in block.text
