"""docs/pipelines.md, walked as printed on an empty node: its cells in one notebook, its commands beside them.

Nothing is added: topics and records are made by the page itself. Only addresses differ.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from tests.support.node import Node
from tests.support.printed import Walk, blocks
from tests.support.readme import usual_addresses

EXPECTED: Final[Mapping[str, tuple[str, ...]]] = {
    "riverlog produce orders": (r'"records": ?4',),
    'Pipeline("revenue"': (),
    "riverlog consume revenue": (r'"revenue":6.5,"orders":2', r'"customer":"bob","revenue":1.0,"orders":1'),
    "import session, sliding": (),
    "sold.join(payments": (),
    "riverlog produce clicks": (r'"records": ?2',),
    "clicks.df.printSchema": (r"user: string",),
    "cat > clicks.py": (r"Pipeline clicks: State=stopped", "Lag=0"),
    "spark-class": (),
    "riverlog pipelines picture": (r"query clicks",),
    "riverlog pipelines state": (r'"user": "bob"}, "value": {"count": 1}', r"ann.*at.*10:00:05Z"),
}
"""By what a block is known: what it prints, as regular expressions."""


@pytest.mark.timeout(2400)  # seven JVMs take their time on a machine that has other work
def test_the_page_runs_as_printed(tmp_path: Path) -> None:
    page = blocks("docs/pipelines.md")
    done = set()
    with Node(tmp_path, settings={"checkpoints.port": "0"}) as node:
        walk = Walk(tmp_path, usual_addresses(node), seconds_max=800)
        with walk.notebook() as notebook:
            for place, block in enumerate(page):
                if block.language not in ("sh", "python"):
                    continue
                (known,) = (each for each in EXPECTED if each in block.text)
                printed = (notebook if block.language == "python" else walk).run(block)
                for pattern in EXPECTED[known]:
                    assert re.search(pattern, printed), f"{block.text}\n{printed}"
                if page[place + 1 : place + 2] and page[place + 1].language == "text":
                    assert printed == page[place + 1].text
                done.add(known)
    assert done == set(EXPECTED)
