"""What one client writes, every other one reads: the same records, whoever looks."""

from collections.abc import Callable, Iterator, Sequence
from functools import cache

import pytest

from tests.conformance.adapters import CODECS, Client, Message
from tests.conformance.adapters.registry import CLIENTS, load, why_missing
from tests.conformance.behaviours import LONG_AGO_MS, odd_records, stored_codecs

Written = tuple[str, Sequence[Message]]


def _client_parameters() -> list[object]:
    return [
        pytest.param(name, marks=pytest.mark.skipif(bool(why), reason=str(why)))
        for name in CLIENTS
        for why in [why_missing(name)]
    ]


@pytest.fixture(scope="module")
def client_named(bootstrap: str) -> Iterator[Callable[[str], Client]]:
    """Give one instance of each client for all tests here."""
    opened: dict[str, Client] = {}

    def give(name: str) -> Client:
        if name not in opened:
            opened[name] = load(name)(bootstrap)
        return opened[name]

    yield give
    for client in opened.values():
        client.close()


@pytest.fixture(scope="module")
def written(client_named: Callable[[str], Client], new_topic: Callable[..., str]) -> Callable[[str, str], Written]:
    """Give a topic that one client wrote with one codec, and what it wrote; written once for all readers."""

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


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("reader_name", _client_parameters())
@pytest.mark.parametrize("writer_name", _client_parameters())
def test_one_client_reads_what_another_wrote(
    writer_name: str,
    reader_name: str,
    codec: str,
    client_named: Callable[[str], Client],
    written: Callable[[str, str], Written],
    bootstrap: str,
) -> None:
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
