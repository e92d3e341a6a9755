"""A trial of the benchmark on a broker in this process: it shows that a probe works, not how fast anything is."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from bench.trial import Contender, Trial
from bench.workshop import Workshop
from riverlog.testing import running_broker


@dataclass(slots=True)
class Here:
    """A node in a thread of this process."""

    port: int
    data: Path
    host: str = "127.0.0.1"
    pid: int = field(default_factory=os.getpid)

    def stop(self) -> None: ...

    def kill(self) -> None: ...


class Ours:
    """What probes that start no node ask a contender for."""

    name = "riverlog"
    durable_topic: Mapping[str, str] = {"durability": "fsync"}


@contextmanager
def short_trial(*, seconds: float = 0.01, **settings: object) -> Iterator[Trial]:
    """Run a broker, and give a trial on it that is over soon."""
    with running_broker(log_segment_delete_delay_ms=0, **settings) as broker:
        node = Here(int(broker.bootstrap_servers.rpartition(":")[2]), Path(broker.folder))
        with Workshop(node.data) as workshop:
            yield Trial(cast(Contender, Ours()), node, node.data, seconds, workshop)
