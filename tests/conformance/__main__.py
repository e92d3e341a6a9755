"""Run every client and foreign suite against a node, and print one table: `python -m tests.conformance`.

A client that is missing is NOT RUN, which is a failure like any other. CONFORMANCE_BOOTSTRAP names another
cluster to run against.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bench import connector
from tests.conformance import kafka_python_suite
from tests.conformance.adapters.registry import load, why_missing
from tests.conformance.tally import Tally

HERE: Final = Path(__file__).parent
KAFKA_PYTHONS_OWN: Final = "kafka-python's own tests"
COLUMNS: Final = ("client", "version", "tests", "passed", "failed", "pending", "NOT RUN")


@dataclass(frozen=True, slots=True)
class Suite:
    """One line of the table: which tests, and of which client; without a client they need none."""

    name: str
    client: str | None
    tests: tuple[str, ...]
    version: str = ""
    arguments: tuple[str, ...] = ()
    folder: Path = HERE.parents[1]
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Result:
    suite: Suite
    tally: Tally
    why_not_run: tuple[str, ...] = ()

    @property
    def good(self) -> bool:
        return not self.tally.count("failed") and not self.tally.count("not run") and not self.why_not_run

    def row(self) -> tuple[str, ...]:
        not_run = [*self.why_not_run, *sorted(self.tally.reasons())]
        passed_though_pending = self.tally.count("passed though pending")
        return (
            self.suite.name,
            self.suite.version or _version(self.suite.client),
            str(len(self.tally.outcomes)),
            str(self.tally.count("passed") + passed_though_pending),
            str(self.tally.count("failed")),
            str(self.tally.count("pending")),
            "; ".join(not_run) or "-",
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all, or what is named, and give the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.conformance", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [*(suite.name for suite in OWN_SUITES), KAFKA_PYTHONS_OWN]
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"run these only; there are: {', '.join(names)}")
    wanted = parser.parse_args(arguments).suites or names
    if unknown := [name for name in wanted if name not in names]:
        parser.error(f"there is no suite {unknown[0]!r}; there are: {', '.join(names)}")
    _install_kcat()
    results = [_run(suite) for suite in OWN_SUITES if suite.name in wanted]
    if KAFKA_PYTHONS_OWN in wanted:
        results.append(_run_kafka_python_suite())
    _print_table([result.row() for result in results])
    for result in results:
        for outcome in ("failed", "passed though pending"):
            for test in result.tally.named(outcome):
                print(f"{outcome}: {result.suite.name}: {test}")
    return 0 if all(result.good for result in results) else 1


OWN_SUITES: Final = (
    Suite("confluent-kafka", "confluent-kafka", ("test_confluent_kafka.py",)),
    Suite("kafka-python", "kafka-python", ("test_kafka_python.py",)),
    Suite("aiokafka", "aiokafka", ("test_aiokafka.py",)),
    Suite("kcat", "kcat", ("test_kcat.py",)),
    Suite("KafkaJS", "KafkaJS", ("foreign/check_kafkajs.py",)),
    Suite("Java client", "Java client", ("foreign/check_java.py",)),
    Suite("franz-go", "franz-go", ("foreign/check_franz_go.py",)),
    Suite("all pairs of them", None, ("test_cross_client.py", "foreign/check_pairs.py")),
    Suite("transactions of Python clients", None, ("test_transactions.py",)),
    Suite("Apache Kafka's tools", "Java client", ("foreign/check_tools.py",)),
    Suite("Apache Kafka's tools at a cluster", "Java client", ("foreign/check_cluster_tools.py",)),
    Suite("a broker of Apache Kafka at our controllers", "Java client", ("foreign/check_kafka_broker.py",)),
    Suite("elections of Apache Kafka", "Java client", ("foreign/check_elections.py",)),
    Suite("metadata records at Apache Kafka", "Java client", ("foreign/check_metadata_records.py",)),
    Suite("Apache Kafka's dump of our files", "Java client", ("foreign/check_files.py",)),
    Suite("a folder of Apache Kafka", "Java client", ("foreign/check_kafka_folder.py",)),
    Suite("transactions in folders of both", "Java client", ("foreign/check_transactional_folder.py",)),
    Suite("our transactions at Apache Kafka", "Java client", ("foreign/check_own_client.py",)),
    Suite("our client at a secured Apache Kafka", "Java client", ("foreign/check_security.py",)),
    Suite("Kafka Streams", "Java client", ("foreign/check_streams.py",)),
    Suite("our Spark sink at Apache Kafka", "Java client", ("foreign/check_spark_sink.py",)),
    Suite("transactions as Apache Kafka decides them", "Java client", ("foreign/check_transaction_rules.py",)),
    Suite("Spark's own connector", None, ("foreign/check_spark.py",), version=connector.VERSION),
    Suite("the lines of Spark in bench", None, ("foreign/check_spark_lines.py",), version=connector.VERSION),
    Suite("Apache Kafka's settings", "Java client", ("foreign/check_settings.py",)),
    Suite("groups as Apache Kafka answers them", "Java client", ("foreign/check_group_rules.py",)),
    Suite("programs in docs/clients.md", None, ("test_documented_clients.py", "foreign/check_documented_clients.py")),
    Suite("plain bytes", None, ("test_wire_behaviour.py",)),
)


def _run_kafka_python_suite() -> Result:
    suite = Suite(KAFKA_PYTHONS_OWN, "kafka-python", ())
    try:
        folder = kafka_python_suite.prepare()
    except (OSError, subprocess.CalledProcessError) as error:
        return Result(suite, Tally({}), (f"its source archive could not be fetched: {error}",))
    with ExitStack() as stack:
        bootstrap = os.environ.get("CONFORMANCE_BOOTSTRAP")
        if bootstrap is None:
            home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            bootstrap = stack.enter_context(kafka_python_suite.node(home)).bootstrap
        return _run(
            Suite(
                suite.name,
                suite.client,
                tuple(f"test/integration/{name}" for name in kafka_python_suite.SUITE_FILES),
                arguments=("-v", "--tb=short", "--timeout=60", f"--pending={kafka_python_suite.PENDING}"),
                folder=folder,
                environment=kafka_python_suite.environment(bootstrap, folder),
            )
        )


def _run(suite: Suite) -> Result:
    """Run one suite in a Python of its own, its output going where ours goes."""
    if suite.client is not None and (why := why_missing(suite.client)):
        return Result(suite, Tally({}), (why,))
    print(f"\n=== {suite.name} ===", flush=True)
    inside = suite.folder == HERE.parents[1]
    tests = [str(HERE / name) for name in suite.tests] if inside else list(suite.tests)
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "tally.json"
        plugin = ["-p", "tests.conformance.tally", "-p", "no:cacheprovider", f"--tally={written}"]
        command = [sys.executable, "-m", "pytest", *plugin, *suite.arguments, *tests]
        ended = subprocess.run(command, cwd=suite.folder, env={**os.environ, **suite.environment}).returncode
        tally = Tally.read(written)
    if ended not in (0, 1) or not tally.outcomes:
        return Result(suite, tally, (f"pytest ended with {ended}",))
    return Result(suite, tally)


def _install_kcat() -> None:
    """Fetch kcat where that is possible; where it is not, the table says so."""
    if not shutil.which("kcat") and shutil.which("apt-get") and os.geteuid() == 0:
        subprocess.run(["apt-get", "update", "-qq"])
        subprocess.run(
            ["apt-get", "install", "-y", "-qq", "kcat"], env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        )


def _version(client: str | None) -> str:
    return "-" if client is None or why_missing(client) else load(client).version()


def _print_table(rows: list[tuple[str, ...]]) -> None:
    table = [COLUMNS, *rows]
    widths = [max(len(row[column]) for row in table) for column in range(len(COLUMNS) - 1)]
    print()
    for row in table:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        print("  ".join([*cells, row[-1]]))


if __name__ == "__main__":
    sys.exit(main())
