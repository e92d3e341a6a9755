"""What hands type that know kafka-*.sh, kcat or rpk, and how the same is written here.

Options are looked up by the command, then by its group, then by themselves alone. A hint completes the sentence
`COMMAND has no option --topic: …`.
"""

from typing import Final

COMMANDS: Final = {
    "alter": "topics alter",
    "broker": "cluster status",
    "brokers": "cluster status",
    "cat": "consume",
    "cluster config describe": "cluster config get",
    "cluster config list": "cluster config get",
    "cluster config show": "cluster config get",
    "cluster describe": "cluster status",
    "cluster health": "doctor",
    "cluster id": "cluster status",
    "cluster partitions": "cluster under-replicated",
    "cluster info": "cluster status",
    "console-consumer": "consume",
    "console-producer": "produce",
    "consumer": "consume",
    "consumer-groups": "groups",
    "create": "topics create",
    "delete": "topics delete",
    "describe": "topics describe",
    "get-offsets": "topics offsets",
    "group": "groups",
    "groups ls": "groups list",
    "groups reset": "groups reset-offsets",
    "groups rm": "groups delete",
    "groups seek": "groups reset-offsets",
    "list": "topics list",
    "ls": "topics list",
    "metadata": "cluster status",
    "pipeline": "pipelines",
    "producer": "produce",
    "profiles": "profile",
    "publish": "produce",
    "read": "consume",
    "run": "dev",
    "server": "serve",
    "start": "dev",
    "status": "cluster status",
    "subscribe": "consume",
    "tail": "consume",
    "topic": "topics",
    "topics add-partitions": "topics alter",
    "topics alter-config": "topics alter",
    "topics config": "topics alter",
    "topics consume": "consume",
    "topics get-offsets": "topics offsets",
    "topics ls": "topics list",
    "topics produce": "produce",
    "topics rm": "topics delete",
    "topics set": "topics alter",
    "topics show": "topics describe",
    "topics trim-prefix": "topics trim",
    "transaction": "transactions",
    "transactions find-hanging": "transactions list --hung",
    "transactions hanging": "transactions list --hung",
    "transactions hung": "transactions list --hung",
    "up": "dev",
    "write": "produce",
}
"""Words that others use, and the command that does it here."""

FIRST_OPTIONS: Final = {"-C": "consume", "-L": "cluster status", "-P": "produce", "-V": "version", "-v": "version"}
"""Options of others that stand for a command here."""

_TOPIC_NAME: Final = "write the topic's name after the command, or --name TOPIC"
_TOPIC_ARGUMENT: Final = "write the topic's name after the command"
_BROKERS: Final = "-b HOST:PORT names the brokers"
_SETTINGS_FILE: Final = "--command-config FILE reads settings of the client"
_SETTING: Final = "-X NAME=VALUE gives a setting to the client"
_KEY_LINES: Final = "--key-separator TEXT splits each line into key and value, --json reads whole records"
_AS_YOU_LIKE: Final = r"-f '%k: %s\n' prints what you choose, -o json prints all of a record"
_COUNT: Final = "-c N stops after N records"
_EXIT: Final = "-e stops at what is the end when the command starts"
_DONE: Final = "leave it out, the command says it already"

OPTIONS: Final = {
    "": {
        "--admin.config": _SETTINGS_FILE,
        "--bootstrap": _BROKERS,
        "--bootstrap-servers": _BROKERS,
        "--broker": _BROKERS,
        "--broker-list": _BROKERS,
        "--brokers": _BROKERS,
        "--command-property": _SETTING,
        "--config-file": _SETTINGS_FILE,
        "--consumer-property": _SETTING,
        "--consumer.config": _SETTINGS_FILE,
        "--format": "-o table|json|yaml chooses how results are printed",
        "--json": "-o json prints JSON",
        "--producer-property": _SETTING,
        "--producer.config": _SETTINGS_FILE,
        "--zookeeper": "there is no ZooKeeper; -b HOST:PORT names the brokers",
        "-F": _SETTINGS_FILE,
        "-J": "-o json prints JSON",
        "-V": "`riverlog version` prints the version",
        "-v": "`riverlog doctor` looks closer where something is wrong",
    },
    "topics": {
        "--entity-type": "the settings of topics belong to `topics`, those of brokers to `cluster config`",
        "--add-config": "--config NAME=VALUE sets a setting of the topic",
        "--alter": "`topics alter` changes topics",
        "--create": "`topics create` creates topics",
        "--delete": "`topics delete` deletes topics",
        "--describe": "`topics describe` describes topics",
        "--entity-name": _TOPIC_NAME,
        "--list": "`topics list` lists topics",
        "--replicas": "--replication-factor N says how many copies",
        "--offset": "`topics trim --before-offset N` deletes what lies before an offset",
        "--time": "`topics offsets --at TIME` asks for the offsets of a time",
        "--topic": _TOPIC_NAME,
        "--topic-config": "--config NAME=VALUE sets a setting of the topic",
        "-c": "--config NAME=VALUE sets a setting of the topic",
        "-n": _TOPIC_NAME,
        "-p": "--partitions N says how many partitions",
        "-r": "--replication-factor N says how many copies",
        "-t": _TOPIC_NAME,
    },
    "topics delete": {"--if-exists": "`topics list` shows what there is; a topic that is not there is an error"},
    "topics describe": {
        "--under-replicated-partitions": "`cluster under-replicated` lists them",
        "--unavailable-partitions": "`cluster under-replicated` lists them",
    },
    "topics list": {
        "--exclude-internal": "without --internal they are left out",
        "--topic": "`topics describe NAME` shows one topic",
        "--name": "`topics describe NAME` shows one topic",
        "-n": "`topics describe NAME` shows one topic",
        "-t": "`topics describe NAME` shows one topic",
    },
    "produce": {
        "--batch-size": "-X batch.size=BYTES says how large batches may be",
        "--compression-codec": "--compression none|gzip|snappy|lz4|zstd says how to compress",
        "--delimiter": "each line is a record; --whole sends a file as one",
        "--input": "--file FILE reads a file",
        "--property": _KEY_LINES,
        "--reader-property": _KEY_LINES,
        "--request-required-acks": "--acks 0|1|all says who must have a record",
        "--sync": "--acks all is the default; each record is waited for",
        "--topic": _TOPIC_ARGUMENT,
        "-D": "each line is a record; --whole sends a file as one",
        "-P": _DONE,
        "-c": "`head -n N | riverlog produce TOPIC` sends N lines",
        "-f": "--file FILE reads a file; each line of it is a record",
        "-l": "--file FILE reads a file; each line of it is a record",
        "-n": _TOPIC_ARGUMENT,
        "-t": _TOPIC_ARGUMENT,
    },
    "consume": {
        "--consumer-group": "--group NAME reads as a member of a group",
        "--formatter": _AS_YOU_LIKE,
        "--formatter-property": _AS_YOU_LIKE,
        "--include": "--pattern REGEX reads all topics whose whole name matches",
        "--isolation-level": "--isolation read_committed|read_uncommitted says what is read of transactions",
        "--num": _COUNT,
        "--print-control-chars": "what a terminal would obey is shown as it is",
        "--property": _AS_YOU_LIKE,
        "--regex": "--pattern REGEX reads all topics whose whole name matches",
        "--skip-message-on-error": "a record that cannot be read ends the command",
        "--timeout-ms": _EXIT,
        "--topic": _TOPIC_ARGUMENT,
        "--whitelist": "--pattern REGEX reads all topics whose whole name matches",
        "-C": _DONE,
        "-D": r"-f '%s;' prints what you choose after each record",
        "-G": "--group NAME reads as a member of a group",
        "-K": r"-f '%k:%s\n' prints the key as well",
        "-n": _COUNT,
        "-q": "standard error has nothing but what is wrong",
        "-r": "--pattern REGEX reads all topics whose whole name matches",
        "-t": _TOPIC_ARGUMENT,
        "-u": "each record is printed at once",
    },
    "scan": {"--isolation": "--uncommitted reads what is of open and aborted transactions", "--topic": _TOPIC_ARGUMENT},
    "groups": {
        "--all-groups": "without a name, all groups are shown",
        "--delete": "`groups delete` deletes groups",
        "--delete-offsets": "`groups delete` forgets all that a group has committed",
        "--describe": "`groups describe` describes groups",
        "--from-file": "--to-offset N with --topic TOPIC:PARTITION moves one partition",
        "--list": "`groups list` lists groups",
        "--members": "members are shown as well",
        "--name": "write the group's name after the command, or --group NAME",
        "--offsets": "offsets are shown as well",
        "--reset-offsets": "`groups reset-offsets` moves committed offsets",
        "--to-current": "without a change there is nothing to do; `groups describe` shows where the group is",
        "--to": "write --to-earliest, --to-latest, --to-offset N or --to-datetime TIME",
        "--topics": "--topic TOPIC says which topic",
        "-g": "write the group's name after the command, or --group NAME",
        "-t": "--topic TOPIC says which topic",
    },
    "groups delete": {"--all-groups": "name each group; `groups list` shows what there is"},
    "lag": {
        "--all-groups": "without a name, all groups are shown",
        "--name": "write the group's name after the command, or --group NAME",
        "-g": "write the group's name after the command, or --group NAME",
        "-w": "--watch looks again and again",
    },
    "cluster config": {
        "--add-config": "write NAME=VALUE after `cluster config set`",
        "--delete-config": "`cluster config set --delete NAME` takes a setting back to its default",
        "--entity-name": "--broker N says which broker",
        "--entity-type": "these are settings of brokers; `topics alter` changes those of topics",
    },
    "dev": {
        "--config": "`riverlog serve --config FILE` starts from a file",
        "-d": "--data DIR says where the data lies",
        "-p": "--port PORT says where clients connect",
    },
    "storage format": {
        "--add-scram": "users with passwords are not there yet",
        "--metadata-version": "--feature metadata.version=LEVEL says it",
        "--release-version": "--feature metadata.version=LEVEL says it",
        "-S": "users with passwords are not there yet",
        "-r": "--feature metadata.version=LEVEL says it",
    },
    "serve": {
        "--data": "--set log.dirs=DIR says where the data lies",
        "--override": "--set NAME=VALUE overrides a setting",
        "--port": "--set listeners=PLAINTEXT://:PORT says where clients connect",
        "-c": "--config FILE names the file of settings",
    },
}
"""Options by the command or group that they are typed for; `""` is for all."""

VALUES: Final = {
    ("consume", "-o", "beginning"): "-o chooses json or yaml; --from-beginning starts with the oldest record",
    ("consume", "-o", "earliest"): "-o chooses json or yaml; --from-beginning starts with the oldest record",
    ("consume", "-o", "start"): "-o chooses json or yaml; --from-beginning starts with the oldest record",
    ("consume", "-o", "end"): "-o chooses json or yaml; --offset end, the default, reads what comes from now on",
    ("consume", "-o", "stored"): "-o chooses json or yaml; --group NAME goes on where a group has committed",
}
"""Values that belong to another option here, by command and option."""


def of_option(command: str, option: str) -> str | None:
    """Return how the same is written here; None where nobody is known to have the habit."""
    group, _, verb = command.rpartition(" ")
    if option == f"--{verb}":
        return _DONE
    return next((hints[option] for each in (command, group, "") if option in (hints := OPTIONS.get(each, {}))), None)


def of_value(command: str, option: str, value: str) -> str | None:
    """Return where a value belongs that was given to this option."""
    if (command, option) == ("consume", "-o") and value.removeprefix("-").isdecimal():
        return f"-o chooses json or yaml; --offset {value} says where to start"
    return VALUES.get((command, option, value))
