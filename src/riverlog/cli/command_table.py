"""Every command, once: its words, where its function lives, its summary. Listing them loads none of them."""

from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    import click


class Command(NamedTuple):
    """One command; the function is imported when it is called."""

    words: str
    module: str
    function: str
    summary: str
    examples: tuple[str, ...]

    def load(self) -> "click.Command":
        """Import the function, with the options that its decorators declare."""
        loaded: click.Command = getattr(import_module(self.module), self.function)
        return loaded


GROUPS: Final = {
    "topics": "Create, list, describe, alter and delete topics",
    "groups": "List, describe, reset and delete consumer groups",
    "transactions": "List, describe and abort transactions, and find those that hang",
    "pipelines": "Run pipelines on Spark, look at them, and after what they keep",
    "pipelines checkpoints": "List, export and import the checkpoints of Spark's queries",
    "cluster": "Look at brokers, partitions and log directories",
    "log": "Read the files of a log directory without a broker",
    "config": "Explain settings",
}

COMMANDS: Final = (
    Command(
        "dev",
        "riverlog.cli.commands.node",
        "dev",
        "Start a broker for development; there is nothing to set up",
        ("dev", "dev --ephemeral --port 0", "dev --data ./data --set num.partitions=4"),
    ),
    Command(
        "serve",
        "riverlog.cli.commands.node",
        "serve",
        "Start a broker from a configuration file",
        ("serve --config server.properties", "serve --config server.properties --set node.id=2"),
    ),
    Command(
        "topics create",
        "riverlog.cli.commands.topics",
        "create",
        "Create a topic",
        ("topics create orders --partitions 3", "topics create --name audit --config retention.ms=86400000"),
    ),
    Command(
        "topics list",
        "riverlog.cli.commands.topics",
        "list_topics",
        "List the topics",
        ("topics list", "topics list -o json"),
    ),
    Command(
        "topics describe",
        "riverlog.cli.commands.topics",
        "describe",
        "Show a topic's partitions and settings",
        ("topics describe orders", "topics describe --name orders -o yaml"),
    ),
    Command(
        "topics alter",
        "riverlog.cli.commands.topics",
        "alter",
        "Add partitions to a topic, or change its settings",
        ("topics alter orders --partitions 6", "topics alter orders --config retention.ms=3600000"),
    ),
    Command(
        "topics delete",
        "riverlog.cli.commands.topics",
        "delete",
        "Delete topics with all their records",
        ("topics delete orders", "topics delete --name orders --yes"),
    ),
    Command(
        "produce",
        "riverlog.cli.commands.produce",
        "produce",
        "Send lines of standard input or of files as records",
        (
            "produce orders < orders.jsonl",
            "produce orders --key-separator : --header source=shop",
            "produce orders --file a.jsonl --file b.jsonl --compression zstd --rate 500",
        ),
    ),
    Command(
        "consume",
        "riverlog.cli.commands.consume",
        "consume",
        "Print the records of a topic",
        (
            "consume orders --from-beginning --exit",
            "consume orders --offset -10 --exit",
            "consume orders --from-time -15m --output json",
            "consume orders --group billing --from-beginning",
            r"consume orders -f '%t-%p@%o %k: %s\n'",
        ),
    ),
    Command(
        "scan",
        "riverlog.cli.commands.scan",
        "scan",
        "Print a topic as a table, or write it to a file",
        (
            "scan orders --since 1h",
            "scan orders --offset -10 --columns offset,key,value -o json",
            "scan orders --since 2026-01-31 --write orders.parquet",
        ),
    ),
    Command(
        "groups list",
        "riverlog.cli.commands.groups",
        "list_groups",
        "List the groups",
        ("groups list", "groups list --state Empty -o json"),
    ),
    Command(
        "groups describe",
        "riverlog.cli.commands.groups",
        "describe",
        "Show a group's members, what each reads, and how far the group has come",
        ("groups describe billing", "groups describe --group billing -o yaml"),
    ),
    Command(
        "groups reset-offsets",
        "riverlog.cli.commands.groups",
        "reset_offsets",
        "Let a group without live members go on elsewhere",
        (
            "groups reset-offsets --group billing --topic orders --to-earliest",
            "groups reset-offsets billing --topic orders:0,1 --to-datetime 2026-01-31T15:00 --dry-run",
            "groups reset-offsets billing --all-topics --by-duration 2h",
        ),
    ),
    Command(
        "groups delete",
        "riverlog.cli.commands.groups",
        "delete",
        "Delete groups without members, with their committed offsets",
        ("groups delete billing", "groups delete --group billing --yes"),
    ),
    Command(
        "lag",
        "riverlog.cli.commands.groups",
        "lag",
        "Show how many records wait for a group, in each partition and in all",
        ("lag --group billing", "lag --group billing --watch"),
    ),
    Command(
        "transactions list",
        "riverlog.cli.commands.transactions",
        "list_transactions",
        "List transactional ids and what each is doing, or the transactions that hang",
        (
            "transactions list",
            "transactions list --state Ongoing --older-than 5m -o json",
            "transactions list --hung --topic orders",
        ),
    ),
    Command(
        "transactions describe",
        "riverlog.cli.commands.transactions",
        "describe",
        "Show what a transactional id is doing",
        ("transactions describe orders-copier", "transactions describe --transactional-id orders-copier -o yaml"),
    ),
    Command(
        "transactions abort",
        "riverlog.cli.commands.transactions",
        "abort",
        "Abort what a transactional id has open, or a transaction that hangs in a partition",
        (
            "transactions abort orders-copier",
            "transactions abort --topic orders --partition 0 --producer-id 4001 --yes",
        ),
    ),
    Command(
        "pipelines run",
        "riverlog.cli.commands.pipelines.run",
        "run_pipelines",
        "Run the pipelines of a file on Spark, until they are stopped",
        (
            "pipelines run revenue.py",
            "pipelines run revenue.py --master spark://spark:7077 --conf spark.executor.memory=4g",
            "pipelines run revenue.py --trigger available-now",
        ),
    ),
    Command(
        "pipelines list",
        "riverlog.cli.commands.pipelines.queries",
        "list_pipelines",
        "List the queries of Spark whose checkpoints lie on a node, and how they go",
        ("pipelines list", "pipelines list -o json"),
    ),
    Command(
        "pipelines describe",
        "riverlog.cli.commands.pipelines.queries",
        "describe",
        "Show how a query goes: offsets and lag, rates, watermark, late rows, state, the last error",
        ("pipelines describe revenue", "pipelines describe /jobs/revenue -o yaml"),
    ),
    Command(
        "pipelines stop",
        "riverlog.cli.commands.pipelines.lifecycle",
        "stop",
        "Stop pipelines wherever they run, each when its batch is done",
        ("pipelines stop revenue", "pipelines stop revenue sessions --timeout 30"),
    ),
    Command(
        "pipelines reset",
        "riverlog.cli.commands.pipelines.lifecycle",
        "reset",
        "Let pipelines begin anew, from a place in their topics: checkpoint and state are deleted",
        (
            "pipelines reset revenue --to-earliest",
            "pipelines reset revenue --to-datetime 2026-01-31T15:00 --yes",
        ),
    ),
    Command(
        "pipelines replay",
        "riverlog.cli.commands.pipelines.inspection",
        "replay",
        "Run one batch of a pipeline once more, with exactly the input that it had, and print what comes out",
        (
            "pipelines replay revenue --batch 12",
            "pipelines replay revenue --batch 12 --file revenue.py --pdb",
        ),
    ),
    Command(
        "pipelines state",
        "riverlog.cli.commands.pipelines.inspection",
        "state",
        "Print what is in the state of a pipeline: open windows with their sums so far, rows that wait for a partner",
        ("pipelines state revenue", "pipelines state paid --operator 0 --limit 10 -o json"),
    ),
    Command(
        "pipelines picture",
        "riverlog.cli.commands.pipelines.inspection",
        "picture",
        "Draw the pipelines of a file: topics, what is done to their rows, and where it goes",
        ("pipelines picture revenue.py", "pipelines picture revenue.py --svg revenue.svg"),
    ),
    Command(
        "pipelines checkpoints list",
        "riverlog.cli.commands.pipelines.checkpoints",
        "list_checkpoints",
        "List checkpoints with their batches and sizes, or the files of one",
        ("pipelines checkpoints list", "pipelines checkpoints list /pipelines/orders -o json"),
    ),
    Command(
        "pipelines checkpoints export",
        "riverlog.cli.commands.pipelines.checkpoints",
        "export",
        "Copy a checkpoint to a folder",
        ("pipelines checkpoints export /pipelines/orders ./orders-checkpoint",),
    ),
    Command(
        "pipelines checkpoints import",
        "riverlog.cli.commands.pipelines.checkpoints",
        "import_checkpoint",
        "Copy a folder to a checkpoint on a node",
        ("pipelines checkpoints import ./orders-checkpoint /pipelines/orders",),
    ),
    Command(
        "bench",
        "riverlog.cli.commands.bench",
        "bench",
        "Measure how fast a cluster takes records, gives them back, and passes one on",
        (
            "bench",
            "bench -b broker:9092 --record-size 1000 --producers 4 --partitions 4 --compression lz4",
            "bench --topic orders --part consume --seconds 10 -o json",
        ),
    ),
    Command(
        "verify",
        "riverlog.cli.commands.verify",
        "verify",
        "Find out whether a cluster keeps its promises",
        (
            "verify",
            "verify -b broker:9092 --seconds 60 --group consumer",
            "verify --topics 1 --partitions 12 --consumers 6 --rate 5000 -o json",
        ),
    ),
    Command(
        "cluster status",
        "riverlog.cli.commands.cluster",
        "status",
        "Show brokers, controller, partitions and log directories",
        ("cluster status", "cluster status -b broker:9092 -o json"),
    ),
    Command(
        "cluster under-replicated",
        "riverlog.cli.commands.cluster",
        "under_replicated",
        "List partitions that lack replicas or a leader",
        ("cluster under-replicated", "cluster under-replicated -o json"),
    ),
    Command(
        "log dump",
        "riverlog.cli.commands.log",
        "dump",
        "Print segments, indexes and snapshots of producers, and verify them",
        ("log dump riverlog-data/orders-0", "log dump --records 00000000000000000000.log"),
    ),
    Command(
        "doctor",
        "riverlog.cli.commands.doctor",
        "doctor",
        "Try every address of a cluster and say what is wrong",
        ("doctor", "doctor -b broker-1:9092,broker-2:9092"),
    ),
    Command(
        "config explain",
        "riverlog.cli.commands.config",
        "explain",
        "Explain a setting: meaning, type, default, where it is set",
        ("config explain retention.ms", "config explain"),
    ),
    Command("version", "riverlog.cli.commands.version", "version", "Print the version", ("version",)),
)

COMMAND_BY_WORDS: Final = {command.words: command for command in COMMANDS}
