"""From what was set, and where, to what holds."""

import pytest

from riverlog.model.properties import read_properties
from riverlog.model.resolution import (
    check_node,
    check_topic,
    client_listeners,
    configure,
    describe_node,
    describe_topic,
    from_variables,
    topic_config,
    with_dynamic,
)
from riverlog.model.setting import BadSetting, SettingSource
from riverlog.model.settings import Durability, NodeSettings, SettingLayers, TopicConfig


def test_nothing_given_is_the_table_itself():
    settings = configure().settings
    assert settings == NodeSettings(layers=settings.layers)
    assert topic_config({}, settings.layers) == TopicConfig()


def test_dev_differs_where_its_profile_says_so():
    settings = configure(profile="dev").settings
    assert topic_config({}, settings.layers).durability is Durability.OS
    assert settings.group_initial_rebalance_delay_ms == 0
    assert str(settings.listeners[0]) == "PLAINTEXT://127.0.0.1:9092"


def test_flags_beat_variables_and_variables_beat_the_file():
    file = {"num.partitions": "2", "node.id": "2", "region": "file"}
    variables = {
        "RIVERLOG_NUM_PARTITIONS": "3",
        "RIVERLOG_NODE_ID": "3",
        "RIVERLOG_BOOTSTRAP_SERVERS": "x",
        "HOME": "/",
    }
    settings = configure(file=file, variables=variables, flags={"num.partitions": "4"}).settings
    assert (settings.num_partitions, settings.node_id, settings.region) == (4, 3, "file")


@pytest.mark.parametrize(
    ("given", "expected_ms"),
    [
        ({"log.retention.hours": "2"}, 7_200_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, 180_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3", "log.retention.ms": "4"}, 4),
        ({"log.retention.minutes": "-1"}, -1),
    ],
)
def test_the_finest_unit_of_retention_wins(given, expected_ms):
    assert topic_config({}, configure(file=given).settings.layers).retention_ms == expected_ms


def test_a_topics_own_setting_beats_the_nodes():
    layers = configure(file={"log.retention.ms": "5", "log.cleanup.policy": "compact"}).settings.layers
    config = topic_config({"retention.ms": "7", "message.timestamp.type": "LogAppendTime"}, layers)
    assert (config.retention_ms, config.cleanup_compact, config.cleanup_delete) == (7, True, False)
    assert config.message_timestamp_log_append_time


def test_what_is_set_while_the_node_runs_beats_what_it_was_started_with():
    started = configure(file={"max.connections": "1", "log.retention.ms": "1"}).settings
    running = with_dynamic(
        started, node={"max.connections": "3"}, cluster={"max.connections": "2", "log.retention.ms": "2"}
    )
    assert running.max_connections == 3
    assert topic_config({}, running.layers).retention_ms == 2


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("num.partitions", "many", "num.partitions cannot be 'many': it takes a whole number of at least 1."),
        ("num.partitions", "0", "num.partitions cannot be '0': it takes a whole number of at least 1."),
        ("num.partitions", "99999999999", "num.partitions cannot be '99999999999': it is too large."),
        ("num.partitions", "1_000", "num.partitions cannot be '1_000': it takes a whole number of at least 1."),
        ("metrics.port", "70000", "metrics.port cannot be '70000': it takes a whole number from -1 to 65,535."),
        ("auto.create.topics.enable", "yes", "auto.create.topics.enable cannot be 'yes': it takes true or false."),
        ("durability", "maybe", "durability cannot be 'maybe': it takes os or fsync."),
        ("log.cleanup.policy", "burn", "log.cleanup.policy cannot be 'burn': it takes any of delete or compact."),
        (
            "log.cleaner.min.cleanable.ratio",
            "nan",
            "log.cleaner.min.cleanable.ratio cannot be 'nan': it takes a number from 0 to 1.",
        ),
        ("num.partition", "3", "There is no setting num.partition; did you mean num.partitions?"),
        ("zzz", "3", "There is no setting zzz."),
        (
            "authorizer.class.name",
            "x",
            "authorizer.class.name asks for access rules, which a node does not support yet; remove it to do without.",
        ),
        ("listeners", "PLAINTEXT://h", "The listener 'PLAINTEXT://h' cannot be understood; write NAME://host:port."),
        ("listeners", "A://:1,A://:2", "Two listeners are called A; give each its own name."),
        ("listeners", "", "listeners names no address for clients; write PLAINTEXT://host:port."),
        (
            "listeners",
            "SSL://:9092",
            "The listener SSL://:9092 speaks SSL, which this node cannot; use PLAINTEXT, or map the name in "
            "listener.security.protocol.map.",
        ),
        (
            "advertised.listeners",
            "PLAINTEXT://0.0.0.0:9092",
            "advertised.listeners has PLAINTEXT://0.0.0.0:9092: clients cannot connect to that; give a name they can "
            "reach.",
        ),
        ("advertised.listeners", "OUT://h:1", "advertised.listeners has OUT://h:1, but listeners has no OUT."),
    ],
)
def test_bad_values_are_refused_with_one_sentence(name, text, sentence):
    with pytest.raises(BadSetting) as refused:
        configure(flags={name: text})
    assert str(refused.value) == sentence


def test_names_that_mean_nothing_here_are_listed_not_refused():
    configured = configure(file={"zookeeper.connect": "x", "num.io.threads": "8", "num.partitions": "2"})
    assert configured.without_meaning == ("num.io.threads", "zookeeper.connect")
    assert configured.settings.num_partitions == 2


STOCK = """
    # Kafka 4.3's config/server.properties
    process.roles=broker,controller
    node.id=1
    controller.quorum.bootstrap.servers=localhost:9093
    listeners=PLAINTEXT://:9092,CONTROLLER://:9093
    inter.broker.listener.name=PLAINTEXT
    advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
    controller.listener.names=CONTROLLER
    listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
    num.network.threads=3
    num.io.threads=8
    socket.send.buffer.bytes=102400
    socket.receive.buffer.bytes=102400
    socket.request.max.bytes=104857600
    log.dirs=/tmp/kraft-combined-logs
    num.partitions=1
    num.recovery.threads.per.data.dir=1
    offsets.topic.replication.factor=1
    share.coordinator.state.topic.replication.factor=1
    share.coordinator.state.topic.min.isr=1
    transaction.state.log.replication.factor=1
    transaction.state.log.min.isr=1
    log.retention.hours=168
    log.segment.bytes=1073741824
    log.retention.check.interval.ms=300000
"""


def test_a_stock_server_properties_of_a_combined_node_works():
    settings = configure(file=read_properties(STOCK)).settings
    assert [str(each) for each in client_listeners(settings)] == ["PLAINTEXT://:9092"]
    assert settings.log_dirs == ("/tmp/kraft-combined-logs",)


@pytest.mark.parametrize(
    ("name", "text", "feature"),
    [
        ("ssl.keystore.location", "/etc/kafka/server.jks", "TLS"),
        ("ssl.client.auth", "required", "TLS"),
        ("listener.name.external.ssl.keystore.location", "/etc/kafka/server.jks", "TLS"),
        ("sasl.enabled.mechanisms", "SCRAM-SHA-512", "SASL"),
        ("listener.name.external.scram-sha-512.sasl.jaas.config", "org.apache…", "SASL"),
        ("authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer", "access rules"),
        ("remote.log.storage.system.enable", "true", "remote storage"),
    ],
)
def test_what_a_node_cannot_do_yet_is_refused_when_it_is_asked_for(name, text, feature):
    with pytest.raises(BadSetting, match=f"{name} asks for .*{feature}.*not support yet"):
        configure(flags={name: text})
    with pytest.raises(BadSetting, match="not support yet"):
        check_node({name: text})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ssl.client.auth", "none"),
        ("security.inter.broker.protocol", "PLAINTEXT"),
        ("sasl.enabled.mechanisms", "GSSAPI"),
        ("authorizer.class.name", ""),
        ("listener.name.external.ssl.protocol", "TLSv1.3"),
        ("ssl.protocol", "TLSv1.3"),
    ],
)
def test_what_asks_for_nothing_means_nothing(name, text):
    assert configure(flags={name: text}).without_meaning == (name,)


def test_a_wrong_variable_is_named():
    with pytest.raises(
        BadSetting, match=r"There is no setting num.partition; .* See RIVERLOG_NUM_PARTITION in the env"
    ):
        configure(variables={"RIVERLOG_NUM_PARTITION": "3"})


@pytest.mark.parametrize("name", ["num.partition", "num.partitions"])
def test_the_place_is_named_of_what_counts_only(name):
    file, lines, variables = {name: "none"}, {name: "line 7 of a.properties"}, {"RIVERLOG_NUM_PARTITIONS": "none"}
    with pytest.raises(BadSetting, match=r" See line 7 of a\.properties\.$"):
        configure(file=file, lines=lines)
    if name == "num.partitions":
        with pytest.raises(BadSetting, match=r" See RIVERLOG_NUM_PARTITIONS in the environment\.$"):
            configure(file=file, lines=lines, variables=variables)
    with pytest.raises(BadSetting) as trouble:
        configure(file=file, lines=lines, flags={name: "none"})
    assert " See " not in str(trouble.value)


def test_variables_of_kubernetes_and_of_clients_are_no_settings():
    variables = {
        "RIVERLOG_PORT": "tcp://10.0.0.7:9092",
        "RIVERLOG_PORT_9092_TCP": "tcp://10.0.0.7:9092",
        "RIVERLOG_PORT_9092_TCP_ADDR": "10.0.0.7",
        "RIVERLOG_PORT_9092_TCP_PORT": "9092",
        "RIVERLOG_PORT_9092_TCP_PROTO": "tcp",
        "RIVERLOG_SERVICE_HOST": "10.0.0.7",
        "RIVERLOG_SERVICE_PORT": "9092",
        "RIVERLOG_SERVICE_PORT_KAFKA": "9092",
        "RIVERLOG_METRICS_PORT": "tcp://10.0.0.8:9644",
        "RIVERLOG_METRICS_SERVICE_HOST": "10.0.0.8",
        "RIVERLOG_BOOTSTRAP_SERVERS": "127.0.0.1:9092",
        "RIVERLOG_CHECKPOINTS": "http://127.0.0.1:9870",
    }
    assert from_variables(variables) == {}
    assert from_variables({"RIVERLOG_METRICS_PORT": "9700"}) == {"metrics.port": "9700"}


def test_describing_a_topic_says_where_each_value_came_from():
    layers = SettingLayers(static={"log.retention.hours": "1"}, cluster={"log.retention.ms": "9"})
    described = {
        each.name: each
        for each in describe_topic({"retention.ms": "7", "preallocate": "true"}, layers, replication_factor=1)
    }
    retention = described["retention.ms"]
    assert (retention.text, retention.source) == ("7", SettingSource.TOPIC)
    assert [(said.name, said.text, said.source) for said in retention.synonyms] == [
        ("retention.ms", "7", SettingSource.TOPIC),
        ("log.retention.ms", "9", SettingSource.CLUSTER),
        ("log.retention.hours", "1", SettingSource.STATIC),
        ("log.retention.hours", "168", SettingSource.DEFAULT),
    ]
    assert described["preallocate"].text == "true"
    assert described["durability"].source is SettingSource.DEFAULT


def test_a_value_set_in_hours_is_described_in_the_settings_own_unit():
    described = {
        each.name: each
        for each in describe_topic({}, SettingLayers(static={"log.retention.hours": "1"}), replication_factor=1)
    }
    assert (described["retention.ms"].text, described["retention.ms"].source) == ("3600000", SettingSource.STATIC)
    node = {each.name: each for each in describe_node(SettingLayers(static={"log.retention.hours": "1"}))}
    assert node["log.retention.hours"].text == "1"
    assert node["log.retention.ms"].text == "3600000"
    assert node["log.retention.hours"].read_only
    assert not node["log.retention.ms"].read_only


def test_a_topic_cannot_need_more_replicas_than_it_has_unless_it_says_so():
    def described(overrides: dict[str, str], replication_factor: int) -> str:
        found = describe_topic(overrides, SettingLayers(), replication_factor=replication_factor)
        return next(each.text for each in found if each.name == "min.insync.replicas")

    assert [described({}, factor) for factor in (1, 2, 3)] == ["1", "2", "2"]
    assert described({"min.insync.replicas": "3"}, 1) == "3"


def test_topics_cannot_be_given_what_does_not_exist():
    check_topic({"retention.ms": "-1", "remote.storage.enable": "false"}, SettingLayers())
    with pytest.raises(BadSetting, match=r"did you mean retention\.ms\?"):
        check_topic({"retention.msec": "1"}, SettingLayers())
    with pytest.raises(BadSetting, match="cannot be less than"):
        check_topic({"max.compaction.lag.ms": "5", "min.compaction.lag.ms": "6"}, SettingLayers())
    with pytest.raises(BadSetting, match="same policy twice"):
        check_topic({"cleanup.policy": "delete,delete"}, SettingLayers())


def test_topics_and_nodes_are_told_the_others_name():
    with pytest.raises(BadSetting, match=r"setting of topics; for all topics of a node it is log\.retention\.ms\."):
        configure(file={"retention.ms": "5"})
    with pytest.raises(BadSetting, match=r"setting of nodes; for one topic it is retention\.ms\."):
        check_topic({"log.retention.hours": "5"}, SettingLayers())
    with pytest.raises(BadSetting, match=r"There is no setting node\.id"):
        check_topic({"node.id": "5"}, SettingLayers())


def test_running_nodes_change_only_what_can_change():
    check_node({"log.retention.ms": "5", "max.connections": "7"})
    with pytest.raises(BadSetting, match="cannot change while a node runs"):
        check_node({"node.id": "5"})
    with pytest.raises(BadSetting, match="There is no setting"):
        check_node({"nodes.id": "5"})


def test_a_compression_that_a_node_would_have_to_make_is_said_to_mean_nothing():
    assert configure(flags={"compression.type": "zstd", "num.io.threads": "8"}).without_meaning == (
        "compression.type",
        "num.io.threads",
    )
    assert configure(flags={"compression.type": "producer"}).without_meaning == ()
