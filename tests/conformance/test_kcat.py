"""kcat against the broker, where kcat is installed."""

import json
import subprocess
from collections.abc import Callable

import pytest

from tests.conformance.adapters import Client, Message, Refused
from tests.conformance.adapters.kcat import Kcat
from tests.conformance.adapters.registry import why_missing
from tests.conformance.behaviours import UNKNOWN_TOPIC_OR_PARTITION, ReadsAndWrites

pytestmark = pytest.mark.skipif(why_missing("kcat") is not None, reason="kcat is not installed")


class TestKcat(ReadsAndWrites):
    adapter = Kcat

    def test_metadata_names_the_broker(self, bootstrap: str, new_topic: Callable[..., str]) -> None:
        topic = new_topic(partitions=2)
        metadata = json.loads(self._run(bootstrap, "-L", "-J"))
        assert bootstrap in {broker["name"] for broker in metadata["brokers"]}
        (described,) = [known for known in metadata["topics"] if known["topic"] == topic]
        assert [partition["partition"] for partition in described["partitions"]] == [0, 1]

    def test_the_tail_of_a_topic_is_read(self, client: Client, bootstrap: str, new_topic: Callable[..., str]) -> None:
        topic = new_topic()
        client.produce(topic, [Message(b"%d" % index, partition=0) for index in range(20)])
        assert self._run(bootstrap, "-C", "-t", topic, "-o", "-3", "-e", "-q") == b"17\n18\n19\n"
        assert self._run(bootstrap, "-C", "-t", topic, "-o", "beginning", "-c", "2", "-q") == b"0\n1\n"
        assert self._run(bootstrap, "-C", "-t", topic, "-o", "end", "-e", "-q") == b""
        assert self._run(bootstrap, "-C", "-t", topic, "-o", "s@1", "-c", "1", "-e", "-q") == b"0\n"

    def test_an_unknown_topic_is_named_as_such(self, client: Client, fresh_name: Callable[[], str]) -> None:
        with pytest.raises(Refused) as refused:
            client.consume(fresh_name(), 0, count=1)
        assert refused.value.code == UNKNOWN_TOPIC_OR_PARTITION

    def test_a_group_goes_on_where_it_left_off(
        self, client: Client, bootstrap: str, new_topic: Callable[..., str], fresh_name: Callable[[], str]
    ) -> None:
        topic, group = new_topic(), fresh_name()
        read = ("-G", group, "-q", "-c", "10", "-X", "auto.offset.reset=earliest", topic)
        for first in (0, 10):
            written = [b"%d" % index for index in range(first, first + 10)]
            client.produce(topic, [Message(value, partition=0) for value in written])
            assert self._run(bootstrap, *read).split() == written

    def _run(self, bootstrap: str, *arguments: str) -> bytes:
        return subprocess.run(["kcat", "-b", bootstrap, *arguments], check=True, capture_output=True, timeout=15).stdout
