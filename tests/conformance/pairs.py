"""What one client writes, another reads: the check for one pair, and what all pairs of a run share.

A test module inherits `Pairs` and names its pairs of writer and reader in a parametrised test.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache

import pytest

from tests.conformance.adapters import Client, Message
from tests.conformance.adapters.registry import load, why_missing
from tests.conformance.behaviours import LONG_AGO_MS, odd_records, stored_codecs

Written = tuple[str, Sequence[Message]]


def parameters(pairs: Iterable[tuple[str, str]]) -> list[object]:
    """Return each pair as parameters of a test, to be skipped where one of the two is not installed."""
    missing = cache(why_missing)
    return [
        pytest.param(writer, reader, marks=pytest.mark.skipif(bool(why), reason=str(why)), id=f"{writer} to {reader}")
        for writer, reader in pairs
        for why in [missing(writer) or missing(reader)]
    ]


class Pairs:
    @pytest.fixture(scope="class")
    @classmethod
    def client_named(cls, bootstrap: str) -> Iterator[Callable[[str], Client]]:
        """Yield one instance of each client for all tests here."""
        opened: dict[str, Client] = {}

        def give(name: str) -> Client:
            if name not in opened:
                opened[name] = load(name)(bootstrap)
            return opened[name]

        yield give
        for client in opened.values():
            client.close()

    @pytest.fixture(scope="class")
    @classmethod
    def written(
        cls, client_named: Callable[[str], Client], new_topic: Callable[..., str]
    ) -> Callable[[str, str], Written]:
        """Return a topic that one client wrote with one codec, and what it wrote; written once for all readers."""

        @cache
        def write(writer_name: str, codec: str) -> Written:
            writer, topic = client_named(writer_name), new_topic()
            compressible = (Message(b"long enough to be compressed " * 50, key=b"%d" % index) for index in range(20))
            messages = [
                Message(message.value, message.key, message.headers, LONG_AGO_MS + index if writer.stamps else None, 0)
                for index, message in enumerate([*odd_records(writer), *compressible])
            ]
            writer.produce(topic, messages, compression=codec)
            return topic, messages

        return write

    @pytest.fixture
    def check_pair(
        self,
        client_named: Callable[[str], Client],
        written: Callable[[str, str], Written],
        bootstrap: str,
    ) -> Callable[[str, str, str], None]:
        """Return the check itself: the same records, whoever looks."""

        def check(writer_name: str, reader_name: str, codec: str) -> None:
            topic, messages = written(writer_name, codec)
            records = client_named(reader_name).consume(topic, 0, count=len(messages))
            assert [record.content for record in records] == [(m.key, m.value, m.headers) for m in messages]
            assert [record.offset for record in records] == list(range(len(messages)))
            assert codec in stored_codecs(bootstrap, topic)
            if client_named(writer_name).stamps:
                assert [record.timestamp_ms for record in records] == [message.timestamp_ms for message in messages]
            else:
                seen_by_writer = client_named(writer_name).consume(topic, 0, count=len(messages))
                assert [r.timestamp_ms for r in records] == [r.timestamp_ms for r in seen_by_writer]

        return check
