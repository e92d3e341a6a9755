"""Every command, once: its words, where its function lives, its summary. Listing them loads none of them."""

from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    import click


class CliCommand(NamedTuple):
    """One command. Its function is `module:name` below `commands` and is imported when it is called."""

    words: str
    function: str
    summary: str
    examples: tuple[str, ...]
    """What stands behind the words."""

    def load(self) -> "click.Command":
        """Import the function, with the options that its decorators declare."""
        module, _, name = self.function.partition(":")
        loaded: click.Command = getattr(import_module(f"riverlog.cli.commands.{module}"), name)
        return loaded


GROUPS: Final = {
    "topics": "Create, list, describe, alter, trim and delete topics",
    "groups": "List, describe, reset and delete consumer groups",
    "transactions": "List, describe and abort transactions, and find those that hang",
    "pipelines": "Run, watch, stop, reset and inspect pipelines on Spark",
    "pipelines checkpoints": "List, export and import the checkpoints of Spark's queries",
    "profile": "Save brokers and settings of clients under a name",
    "storage": "Prepare log directories for a cluster, and show whose they are",
    "cluster": "Look at brokers, their partitions, log directories and settings",
    "cluster quorum": "Change which controllers vote on the metadata",
    "cluster config": "Show and change settings of brokers while they run",
    "log": "Read the files of a log directory without a broker",
    "config": "Explain settings",
}

COMMANDS: Final = (
    CliCommand(
        "dev",
        "node:dev",
        "Start a broker for development; there is nothing to set up",
        ("", "--ephemeral --port 0", "--data ./data --set num.partitions=4"),
    ),
    CliCommand(
        "serve",
        "node:serve",
        "Start a broker from a configuration file",
        ("--config server.properties", "--config server.properties --set node.id=2"),
    ),
    CliCommand("storage random-uuid", "storage:random_uuid", "Print a new id, for a cluster or for a directory", ("",)),
    CliCommand(
        "storage format",
        "storage:format_storage",
        "Prepare the log directories of a node for a cluster",
        (
            "-t 4L6g3nShT-eMCtK--X86sw -c server.properties --standalone",
            "-t 4L6g3nShT-eMCtK--X86sw -c server.properties --initial-controllers "
            "1@c1:9093:3Db5QLSqSZieL3rJBUUegA,2@c2:9093:L3zxNDcHSwaJ6VHqzyYdXw",
            "-t 4L6g3nShT-eMCtK--X86sw -c broker.properties",
        ),
    ),
    CliCommand(
        "storage info",
        "storage:info",
        "Show whose the log directories of a node are, and who votes on its metadata",
        ("-c server.properties", "-c server.properties -o json"),
    ),
    CliCommand(
        "demo",
        "demo:demo",
        "Run an example, which starts a node and explains each step",
        ("", "invoices", "--list", "--copy ./examples"),
    ),
    CliCommand(
        "topics create",
        "topics:create",
        "Create topics",
        ("orders --partitions 3", "orders refunds --if-not-exists", "--name audit --config retention.ms=86400000"),
    ),
    CliCommand("topics list", "topics:list_topics", "List the topics", ("", "-o json")),
    CliCommand(
        "topics describe",
        "topics:describe",
        "Show the partitions and settings of topics",
        ("orders", "--name orders -o yaml"),
    ),
    CliCommand(
        "topics offsets",
        "topic_offsets:offsets",
        "Show the first and the last offset of partitions, or the offset at a time",
        ("orders", "orders refunds --at -15m", "orders --at max-timestamp -o json"),
    ),
    CliCommand(
        "topics alter",
        "topics:alter",
        "Add partitions to a topic, or change its settings",
        ("orders --partitions 6", "orders --config retention.ms=3600000"),
    ),
    CliCommand(
        "topics trim",
        "topic_offsets:trim",
        "Delete the oldest records of a topic",
        ("orders --before-time -7d", "orders -p 0 --before-offset 1000 --yes", "orders --all"),
    ),
    CliCommand(
        "topics delete", "topics:delete", "Delete topics with all their records", ("orders", "--name orders --yes")
    ),
    CliCommand(
        "produce",
        "produce:produce",
        "Send lines of standard input or of files as records",
        (
            "orders < orders.jsonl",
            "orders --key-separator : --header source=shop",
            "refunds --json < orders.jsonl",
            "orders --file a.jsonl --file b.jsonl --compression zstd --rate 500",
        ),
    ),
    CliCommand(
        "consume",
        "consume:consume",
        "Print the records of topics",
        (
            "orders --from-beginning --exit",
            "orders refunds -f '%t %s\\n'",
            "--pattern 'orders-.*' --from-time -1h --to-time -5m",
            "orders --offset -10 --exit",
            "orders --from-time -15m --output json",
            "orders --group billing --from-beginning",
            r"orders -f '%t-%p@%o %k: %s\n'",
        ),
    ),
    CliCommand(
        "scan",
        "scan:scan",
        "Print a topic as a table, or write it to a file",
        (
            "orders --since 1h",
            "orders --offset -10 --columns offset,key,value -o json",
            "orders --since 2026-01-31 --write orders.parquet",
        ),
    ),
    CliCommand("groups list", "groups:list_groups", "List the groups", ("", "--state Empty -o json")),
    CliCommand(
        "groups describe",
        "groups:describe",
        "Show the members, committed offsets and lag of groups",
        ("billing", "--group billing -o yaml", ""),
    ),
    CliCommand(
        "groups reset-offsets",
        "groups:reset_offsets",
        "Move the committed offsets of a group without live members",
        (
            "--group billing --topic orders --to-earliest",
            "billing --topic orders:0,1 --to-datetime 2026-01-31T15:00 --dry-run",
            "billing --all-topics --by-duration 2h",
        ),
    ),
    CliCommand(
        "groups delete",
        "groups:delete",
        "Delete groups without members, with their committed offsets",
        ("billing", "--group billing --yes"),
    ),
    CliCommand(
        "lag",
        "groups:lag",
        "Show how many records groups have not read yet",
        ("--group billing", "--group billing --watch", "-o json"),
    ),
    CliCommand(
        "transactions list",
        "transactions:list_transactions",
        "List transactional ids with their states, or the transactions that hang",
        ("", "--state Ongoing --older-than 5m -o json", "--hung --topic orders"),
    ),
    CliCommand(
        "transactions describe",
        "transactions:describe",
        "Show the state, producer and partitions of a transactional id",
        ("orders-copier", "--transactional-id orders-copier -o yaml"),
    ),
    CliCommand(
        "transactions abort",
        "transactions:abort",
        "Abort the open transaction of a transactional id, or one that hangs",
        ("orders-copier", "--topic orders --partition 0 --producer-id 4001 --yes"),
    ),
    CliCommand(
        "pipelines run",
        "pipelines.run:run_pipelines",
        "Run the pipelines of a file on Spark, until they are stopped",
        (
            "revenue.py",
            "revenue.py --master spark://spark:7077 --conf spark.executor.memory=4g",
            "revenue.py --trigger available-now",
        ),
    ),
    CliCommand(
        "pipelines list",
        "pipelines.queries:list_pipelines",
        "List the pipelines whose checkpoints are on a node, and their progress",
        ("", "-o json"),
    ),
    CliCommand(
        "pipelines describe",
        "pipelines.queries:describe",
        "Show a pipeline: offsets and lag, rates, watermark, late rows, state, the last error",
        ("revenue", "/jobs/revenue -o yaml"),
    ),
    CliCommand(
        "pipelines stop",
        "pipelines.lifecycle:stop",
        "Stop pipelines wherever they run, each after its current batch",
        ("revenue", "revenue sessions --timeout 30"),
    ),
    CliCommand(
        "pipelines reset",
        "pipelines.lifecycle:reset",
        "Delete the checkpoint and state of pipelines, so that they start again",
        ("revenue --to-earliest", "revenue --to-datetime 2026-01-31T15:00 --yes"),
    ),
    CliCommand(
        "pipelines replay",
        "pipelines.inspection:replay",
        "Run one batch of a pipeline again, on the same input, and print the results",
        ("revenue --batch 12", "revenue --batch 12 --file revenue.py --pdb"),
    ),
    CliCommand(
        "pipelines state",
        "pipelines.inspection:state",
        "Print the state of a pipeline: open windows, and rows that wait for a join partner",
        ("revenue", "paid --operator 0 --limit 10 -o json"),
    ),
    CliCommand(
        "pipelines picture",
        "pipelines.inspection:picture",
        "Draw the pipelines of a file: topics, steps and outputs",
        ("revenue.py", "revenue.py --svg revenue.svg"),
    ),
    CliCommand(
        "pipelines checkpoints list",
        "pipelines.checkpoints:list_checkpoints",
        "List checkpoints with their batches and sizes, or the files of one",
        ("", "/pipelines/orders -o json"),
    ),
    CliCommand(
        "pipelines checkpoints export",
        "pipelines.checkpoints:export",
        "Copy a checkpoint to a folder",
        ("/pipelines/orders ./orders-checkpoint",),
    ),
    CliCommand(
        "pipelines checkpoints import",
        "pipelines.checkpoints:import_checkpoint",
        "Copy a checkpoint from a folder to a node",
        ("./orders-checkpoint /pipelines/orders",),
    ),
    CliCommand(
        "bench",
        "bench:bench",
        "Measure the throughput and the latency of a cluster",
        (
            "",
            "-b broker:9092 --record-size 1000 --producers 4 --partitions 4 --compression lz4",
            "--topic orders --part consume --seconds 10 -o json",
        ),
    ),
    CliCommand(
        "verify",
        "verify:verify",
        "Test whether a cluster loses, duplicates or reorders records",
        (
            "",
            "-b broker:9092 --seconds 60 --group consumer",
            "--topics 1 --partitions 12 --consumers 6 --rate 5000 -o json",
        ),
    ),
    CliCommand(
        "cluster status",
        "cluster:status",
        "Show brokers, quorum, partitions and log directories",
        ("", "-b broker:9092 -o json", "--bootstrap-controller c1:9093"),
    ),
    CliCommand(
        "cluster metadata",
        "cluster_metadata:metadata",
        "Show the metadata of the cluster: brokers, topics, partitions, settings",
        ("", "-o json", "--records -o json", "--bootstrap-controller c1:9093"),
    ),
    CliCommand(
        "cluster under-replicated",
        "cluster:under_replicated",
        "List partitions that lack replicas or a leader",
        ("", "-o json"),
    ),
    CliCommand(
        "cluster quorum add",
        "cluster_quorum:add_voter",
        "Add a controller to the voters of the metadata",
        ("4@c4:9093", "4@c4:9093:3Db5QLSqSZieL3rJBUUegA --bootstrap-controller c1:9093"),
    ),
    CliCommand(
        "cluster quorum remove",
        "cluster_quorum:remove_voter",
        "Remove a controller from the voters of the metadata",
        ("4", "4:3Db5QLSqSZieL3rJBUUegA --bootstrap-controller c1:9093 --yes"),
    ),
    CliCommand(
        "cluster unregister",
        "cluster_quorum:unregister",
        "Take a broker that is gone for good out of the cluster",
        ("4", "4 --yes"),
    ),
    CliCommand(
        "cluster config get",
        "cluster_config:get",
        "Show the current settings of a broker",
        ("", "log.retention.ms num.io.threads --broker 1", "--all -o json"),
    ),
    CliCommand(
        "cluster config set",
        "cluster_config:set_config",
        "Change settings of brokers while they run",
        ("log.retention.ms=86400000", "--delete log.retention.ms", "log.cleaner.threads=2 --broker 1"),
    ),
    CliCommand(
        "log dump",
        "log:dump",
        "Print segments, indexes and snapshots of producers, and verify them",
        ("riverlog-data/orders-0", "--records 00000000000000000000.log"),
    ),
    CliCommand(
        "doctor",
        "doctor:doctor",
        "Try every address of a cluster and say what is wrong",
        ("", "-b broker-1:9092,broker-2:9092"),
    ),
    CliCommand(
        "config explain",
        "config:explain",
        "Explain a setting: meaning, type, default, where it is set",
        ("retention.ms", ""),
    ),
    CliCommand(
        "profile create",
        "profile:create",
        "Save brokers and settings of the client as a profile",
        ("local -b 127.0.0.1:9092", "prod -b broker:9092 --command-config client.properties"),
    ),
    CliCommand("profile list", "profile:list_profiles", "List the profiles", ("", "-o json")),
    CliCommand("profile use", "profile:use", "Choose the profile for commands that name no brokers", ("prod",)),
    CliCommand(
        "profile describe", "profile:describe", "Show the settings of a profile; passwords are hidden", ("prod",)
    ),
    CliCommand("profile delete", "profile:delete", "Delete a profile", ("prod",)),
    CliCommand(
        "completion",
        "completion:completion",
        "Print the script for completion in a shell",
        ("bash", "zsh", "fish"),
    ),
    CliCommand("version", "version:version", "Print the version", ("",)),
)

COMMAND_BY_WORDS: Final = {command.words: command for command in COMMANDS}
