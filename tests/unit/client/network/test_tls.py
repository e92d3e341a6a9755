"""A client over TLS: what is sent arrives whole, in order and encrypted, and only where the server can be trusted."""

import asyncio

import pytest
import trustme

from riverlog.client.consumer.consumer import Consumer
from riverlog.client.errors import Unreachable
from riverlog.client.network.security import Security, Tls
from riverlog.client.network.tls import TlsNetwork
from riverlog.client.producer.producer import Producer
from riverlog.model.ids import TopicPartition
from riverlog.model.ports import Socket
from tests.support.brokers import FakeCluster
from tests.support.disk import MemoryDisk
from tests.support.encrypted import AUTHORITY, EncryptedNetwork, authority_pem, server_context
from tests.support.network import MemoryNetwork

TRUSTING = Tls(authority=authority_pem())


class Echo:
    """A server that sends back what it hears."""

    def __init__(self, network: EncryptedNetwork) -> None:
        self._unsent = bytearray()
        network.listen("node1", 9092, self._accept)

    def _accept(self, stream: Socket) -> None:
        self._stream = stream
        stream.on_readable(self._read)

    def _read(self) -> None:
        room = memoryview(bytearray(10_000))
        try:
            count = self._stream.receive_into(room)
        except BlockingIOError:
            return
        if count == 0:
            self._stream.close()
            return
        self._unsent += room[:count]
        self._write()

    def _write(self) -> None:
        try:
            while self._unsent:
                del self._unsent[: self._stream.send(bytes(self._unsent))]
        except BlockingIOError:
            self._stream.on_writable(self._write)
        else:
            self._stream.on_writable(None)


async def exchange(stream: Socket, data: bytes) -> bytes:
    """Send all of it while reading, and give what came back."""
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    sent, heard = 0, bytearray()

    def write() -> None:
        nonlocal sent
        try:
            while sent < len(data):
                sent += stream.send(data[sent:])
        except BlockingIOError:
            return
        stream.on_writable(None)

    def read() -> None:
        room = memoryview(bytearray(1_000))  # far less than a record of TLS: the rest must not be forgotten
        try:
            heard.extend(room[: stream.receive_into(room)])
        except BlockingIOError:
            return
        if len(heard) == len(data) and not done.done():
            done.set_result(None)

    stream.on_readable(read)
    stream.on_writable(write)
    await asyncio.wait_for(done, 60)
    return bytes(heard)


@pytest.mark.parametrize("window_bytes", [500, 20_000, 256 * 1024])
@pytest.mark.parametrize("size", [1, 20_000, 400_000])
async def test_bytes_come_back_as_they_were_sent(size: int, window_bytes: int) -> None:
    network = EncryptedNetwork(server_context("node1"), window_bytes=window_bytes)
    Echo(network)
    stream = await TlsNetwork(network, TRUSTING.context()).connect("node1", 9092)
    data = bytes(number * 7 % 251 for number in range(size))
    assert await exchange(stream, data) == data
    stream.close()
    stream.close()


async def test_bytes_of_a_file_are_sent_too() -> None:
    network = EncryptedNetwork(server_context("node1"))
    Echo(network)
    stream = await TlsNetwork(network, TRUSTING.context()).connect("node1", 9092)
    disk = MemoryDisk()
    disk.make_folder("/data")
    file = disk.open("/data/file", create=True)
    file.write(0, [b"0123456789"])
    assert stream.send_file(file, 2, 5) == 5
    await asyncio.sleep(1)
    heard = memoryview(bytearray(100))
    assert bytes(heard[: stream.receive_into(heard)]) == b"23456"


async def test_producer_and_consumer_work_encrypted() -> None:
    cluster = FakeCluster(network=EncryptedNetwork(server_context("node1")))
    cluster.create_topic("orders")
    security = Security(tls=TRUSTING)
    async with Producer(cluster.bootstrap, ports=cluster.ports, security=security) as producer:
        sent = [producer.send_soon("orders", b"%d" % number + bytes(10_000)) for number in range(200)]
        assert [(await each).offset for each in sent] == list(range(200))
    async with Consumer(cluster.bootstrap, ports=cluster.ports, security=security) as consumer:
        consumer.assign([TopicPartition("orders", 0)])
        await consumer.seek_to_beginning(TopicPartition("orders", 0))
        values: list[bytes | None] = []
        while len(values) < 200:
            values += [record.value for record in await consumer.poll(10_000)]
    assert values == [b"%d" % number + bytes(10_000) for number in range(200)]


async def test_a_server_that_another_authority_vouches_for_is_not_trusted() -> None:
    cluster = FakeCluster(network=EncryptedNetwork(server_context("node1")))
    tls = Tls(authority=trustme.CA().cert_pem.bytes().decode())
    with pytest.raises(Unreachable, match="node1:9092: its certificate is not trusted: unable to get local issuer"):
        await Producer(cluster.bootstrap, ports=cluster.ports, security=Security(tls=tls)).start()


async def test_a_server_of_another_name_is_not_trusted_unless_names_do_not_matter() -> None:
    cluster = FakeCluster(network=EncryptedNetwork(server_context("elsewhere")))
    with pytest.raises(Unreachable, match="its certificate is not trusted: Hostname mismatch"):
        await Producer(cluster.bootstrap, ports=cluster.ports, security=Security(tls=TRUSTING)).start()
    careless = Security(tls=Tls(authority=authority_pem(), checks_name=False))
    async with Producer(cluster.bootstrap, ports=cluster.ports, security=careless) as producer:
        assert (await producer.send("orders", b"x", partition=0)).offset == 0


async def test_a_client_shows_its_certificate_where_it_is_asked_for() -> None:
    network = EncryptedNetwork(server_context("node1", asks_for_certificate=True))
    cluster = FakeCluster(network=network)
    own = AUTHORITY.issue_cert("client")
    tls = Tls(
        authority=authority_pem(),
        certificate=own.cert_chain_pems[0].bytes().decode(),
        key=own.private_key_pem.bytes().decode(),
    )
    async with Producer(cluster.bootstrap, ports=cluster.ports, security=Security(tls=tls)) as producer:
        assert (await producer.send("orders", b"x", partition=0)).offset == 0
    with pytest.raises(Unreachable):
        await Producer(cluster.bootstrap, ports=cluster.ports, security=Security(tls=TRUSTING)).start()
    assert "certificate" in str(network.refused[0])


async def test_a_server_without_tls_is_told_apart() -> None:
    cluster = FakeCluster(network=MemoryNetwork())
    with pytest.raises(Unreachable, match="node1:9092"):
        await Producer(cluster.bootstrap, ports=cluster.ports, security=Security(tls=TRUSTING)).start()
