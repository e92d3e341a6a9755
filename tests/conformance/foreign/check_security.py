"""riverlog's own client, and its Spark source and sink, at an Apache Kafka that encrypts and asks who is there."""

import asyncio
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import trustme
from pyspark.sql import SparkSession

from bench.cache import cache_folder
from bench.nodes import free_port
from bench.peer import Kafka
from riverlog import Admin, Consumer, KafkaError, Producer, TopicPartition
from riverlog.client.network.security import Security
from riverlog.spark import session
from tests.conformance.foreign.build import class_path

USER, PASSWORD = "alice", 'a "quoted; secret'
SASL = {"PLAIN": "plain.PlainLoginModule", "SCRAM-SHA-256": "scram.ScramLoginModule"}
CA, OTHER_CA = trustme.CA(), trustme.CA()


class Secured(NamedTuple):
    """The listeners of a broker, and what to trust."""

    ssl: str
    mutual: str
    sasl_ssl: str
    sasl_plaintext: str
    authority: Path
    own: Path


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    home = tmp_path_factory.mktemp("kafka")
    kafka = Kafka(cache_folder())
    kafka.prepare()
    kafka.format(home)
    ports = {name: free_port() for name in ("SSL", "MUTUAL", "SASL_SSL", "SASL_PLAINTEXT")}
    for name, names in (("server", ("127.0.0.1", "localhost")), ("client", ("client",))):
        CA.issue_cert(*names).private_key_and_cert_chain_pem.write_to_path(home / f"{name}.pem")
    CA.cert_pem.write_to_path(home / "ca.pem")
    _secure(home, ports)
    _add_scram_user(home)
    broker = kafka.start(home)
    addresses = [f"127.0.0.1:{port}" for port in ports.values()]
    yield Secured(*addresses, authority=home / "ca.pem", own=home / "client.pem")
    broker.stop()


def _secure(home: Path, ports: dict[str, int]) -> None:
    """Add the listeners; Kafka wants keys as PKCS #8 in PEM."""
    pem = home / "server.pem"
    pkcs8 = subprocess.run(["openssl", "pkcs8", "-topk8", "-nocrypt", "-in", str(pem)], capture_output=True, check=True)
    certificate = pem.read_text()[pem.read_text().index("-----BEGIN CERTIFICATE") :]
    pem.write_text(pkcs8.stdout.decode() + certificate)
    settings = home / "server.properties"
    lines = settings.read_text().splitlines()
    place = next(index for index, line in enumerate(lines) if line.startswith("listeners="))
    lines[place] += "".join(f",{name}://127.0.0.1:{port}" for name, port in ports.items())
    quoted = PASSWORD.replace('"', '\\\\"')
    lines += [
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SSL:SSL,MUTUAL:SSL,"
        "SASL_SSL:SASL_SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "ssl.keystore.type=PEM",
        f"ssl.keystore.location={pem}",
        "ssl.truststore.type=PEM",
        f"ssl.truststore.location={home / 'ca.pem'}",
        "listener.name.mutual.ssl.client.auth=required",
        "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256",
        *(
            f"listener.name.{listener}.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule "
            f'required user_{USER}="{quoted}";'
            for listener in ("sasl_ssl", "sasl_plaintext")
        ),
        *(
            f"listener.name.{listener}.scram-sha-256.sasl.jaas.config="
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"
            for listener in ("sasl_ssl", "sasl_plaintext")
        ),
    ]
    settings.write_text("\n".join(lines) + "\n")


def _add_scram_user(home: Path) -> None:
    """Put the user into the metadata before the broker starts: the folder is formatted again with it."""
    data = next(line for line in (home / "server.properties").read_text().splitlines() if line.startswith("log.dirs="))
    subprocess.run(["rm", "-rf", data.partition("=")[2]], check=True)
    command = ["java", "kafka.tools.StorageTool", "format", "--standalone", "-t", "AAAAAAAAAAAAAAAAAAAAAA", "-c"]
    user = f"SCRAM-SHA-256=[name={USER},password={PASSWORD.replace(chr(34), '')}]"
    done = subprocess.run(
        [*command, str(home / "server.properties"), "--add-scram", user],
        env=os.environ | {"CLASSPATH": class_path()},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def login(mechanism: str, password: str | None = None) -> dict[str, str]:
    if password is None:
        password = PASSWORD if mechanism == "PLAIN" else PASSWORD.replace('"', "")
    quoted = password.replace('"', '\\"')
    module = f"org.apache.kafka.common.security.{SASL[mechanism]}"
    return {
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f'{module} required username="{USER}" password="{quoted}";',
    }


def ways(kafka: Secured) -> dict[str, tuple[str, dict[str, str]]]:
    """Return each way to the broker by name: where, and with which settings."""
    trust = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(kafka.authority)}
    return {
        "SSL": (kafka.ssl, {"security.protocol": "SSL", **trust}),
        "mutual": (kafka.mutual, {"security.protocol": "SSL", **trust, "ssl.keystore.location": str(kafka.own)}),
        "PLAIN over SSL": (kafka.sasl_ssl, {"security.protocol": "SASL_SSL", **trust, **login("PLAIN")}),
        "SCRAM over SSL": (kafka.sasl_ssl, {"security.protocol": "SASL_SSL", **trust, **login("SCRAM-SHA-256")}),
        "PLAIN": (kafka.sasl_plaintext, {"security.protocol": "SASL_PLAINTEXT", **login("PLAIN")}),
        "SCRAM": (kafka.sasl_plaintext, {"security.protocol": "SASL_PLAINTEXT", **login("SCRAM-SHA-256")}),
    }


WAYS = ["SSL", "mutual", "PLAIN over SSL", "SCRAM over SSL", "PLAIN", "SCRAM"]


@pytest.mark.parametrize("way", WAYS)
def test_records_are_written_in_transactions_and_read(kafka: Secured, way: str) -> None:
    bootstrap, settings = ways(kafka)[way]
    security = Security.from_settings(settings)
    topic = way.replace(" ", "-").lower()
    values = [b"%d" % number + bytes(5_000) for number in range(500)]

    async def story() -> None:
        async with Admin(bootstrap, security=security) as admin:
            await admin.create_topic(topic, partitions=1)
        async with (
            Producer(bootstrap, transactional_id=topic, security=security) as producer,
            producer.transaction(),
        ):
            for value in values:
                await producer.send(topic, value) if value == values[0] else producer.send_soon(topic, value)
        async with Consumer(bootstrap, isolation_level="read_committed", security=security) as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            await consumer.seek_to_beginning(TopicPartition(topic, 0))
            read: list[bytes | None] = []
            while len(read) < len(values):
                read += [record.value for record in await consumer.poll(15_000)]
        assert read == values

    asyncio.run(asyncio.wait_for(story(), 60))


@pytest.mark.parametrize(
    ("way", "changed", "reason"),
    [
        ("PLAIN", login("PLAIN", "wrong"), "Authentication failed: Invalid username or password"),
        ("SCRAM", login("SCRAM-SHA-256", "wrong"), "Authentication failed during authentication due to invalid cred"),
        ("SCRAM", {"sasl.mechanism": "SCRAM-SHA-512"}, "does not take SCRAM-SHA-512; it takes"),
        ("SSL", {"ssl.truststore.certificates": OTHER_CA.cert_pem.bytes().decode()}, "its certificate is not trusted"),
        ("SSL", {"security.protocol": "PLAINTEXT"}, "no broker could be reached"),
        ("PLAIN", {"security.protocol": "PLAINTEXT"}, "no broker could be reached"),
    ],
)
def test_who_is_not_believed_is_told_why(kafka: Secured, way: str, changed: dict[str, str], reason: str) -> None:
    bootstrap, settings = ways(kafka)[way]
    security = Security.from_settings({**settings, **changed})
    with pytest.raises(KafkaError, match=reason):
        asyncio.run(asyncio.wait_for(Producer(bootstrap, security=security).start(), 60))


def test_spark_writes_and_reads_there(kafka: Secured, spark: SparkSession) -> None:
    bootstrap, settings = ways(kafka)["SCRAM over SSL"]
    options = {"kafka.bootstrap.servers": bootstrap, **{f"kafka.{name}": value for name, value in settings.items()}}

    async def create() -> None:
        async with Admin(bootstrap, security=Security.from_settings(settings)) as admin:
            await admin.create_topic("from-spark", partitions=2)

    asyncio.run(create())
    rows = spark.range(1_000).selectExpr("cast(id AS string) AS key", "cast(id * id AS string) AS value")
    rows.write.format("riverlog").mode("append").options(**options).option("topic", "from-spark").save()
    found = spark.read.format("riverlog").options(**options).option("subscribe", "from-spark").load()
    values = [int(row.value) for row in found.selectExpr("cast(value AS string) AS value").collect()]
    assert sorted(values) == [number * number for number in range(1_000)]


@pytest.fixture
def spark() -> Iterator[SparkSession]:
    started = session("security", master="local[2]")
    yield started
    started.stop()
