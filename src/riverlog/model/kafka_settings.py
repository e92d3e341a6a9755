"""Names that Kafka 4.3 knows and that are not used here.

Most of them mean nothing here: files written for Kafka may keep them, and a node lists those that it was given in one
warning. Some ask for what a node cannot do yet, such as TLS: it must not start as if it did, so these are an error,
unless their value asks for nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

_TOPIC: Final = """
compression.gzip.level compression.lz4.level compression.zstd.level
follower.replication.throttled.replicas leader.replication.throttled.replicas
message.downconversion.enable message.format.version preallocate
local.retention.bytes local.retention.ms remote.log.copy.disable remote.log.delete.on.disable
remote.storage.enable
"""

_NODE: Final = """
add.partitions.to.txn.retry.backoff.max.ms add.partitions.to.txn.retry.backoff.ms
alter.log.dirs.replication.quota.window.num alter.log.dirs.replication.quota.window.size.seconds
auto.include.jmx.reporter auto.leader.rebalance.enable background.threads broker.id broker.id.generation.enable
compression.gzip.level compression.lz4.level compression.zstd.level connection.failed.authentication.delay.ms
connections.max.reauth.ms control.plane.listener.name controlled.shutdown.enable controlled.shutdown.max.retries
controlled.shutdown.retry.backoff.ms controller.performance.always.log.threshold.ms
controller.performance.sample.period.ms controller.quorum.append.linger.ms controller.quorum.fetch.max.bytes
controller.quorum.fetch.snapshot.max.bytes controller.quota.window.num controller.quota.window.size.seconds
controller.socket.timeout.ms delegation.token.expiry.check.interval.ms delegation.token.expiry.time.ms
delegation.token.max.lifetime.ms delete.records.purgatory.purge.interval.requests early.start.listeners
fetch.purgatory.purge.interval.requests follower.fetch.last.tiered.offset.enable
group.consumer.assignor.offload.enable group.consumer.max.assignment.interval.ms
group.consumer.max.heartbeat.interval.ms group.consumer.max.session.timeout.ms
group.consumer.min.assignment.interval.ms group.consumer.min.heartbeat.interval.ms
group.consumer.min.session.timeout.ms group.consumer.regex.refresh.interval.ms group.coordinator.append.linger.ms
group.coordinator.background.threads group.coordinator.cached.buffer.max.bytes group.coordinator.rebalance.protocols
group.coordinator.threads group.share.assignment.interval.ms group.share.assignors group.share.delivery.count.limit
group.share.heartbeat.interval.ms group.share.initialize.retry.interval.ms group.share.max.assignment.interval.ms
group.share.max.delivery.count.limit group.share.max.heartbeat.interval.ms group.share.max.partition.max.record.locks
group.share.max.record.lock.duration.ms group.share.max.session.timeout.ms group.share.max.share.sessions
group.share.max.size group.share.min.assignment.interval.ms group.share.min.delivery.count.limit
group.share.min.heartbeat.interval.ms group.share.min.partition.max.record.locks
group.share.min.record.lock.duration.ms group.share.min.session.timeout.ms group.share.partition.max.record.locks
group.share.persister.class.name group.share.record.lock.duration.ms group.share.session.timeout.ms
group.streams.assignment.interval.ms group.streams.heartbeat.interval.ms group.streams.initial.rebalance.delay.ms
group.streams.max.assignment.interval.ms group.streams.max.heartbeat.interval.ms group.streams.max.session.timeout.ms
group.streams.max.size group.streams.max.standby.replicas group.streams.min.assignment.interval.ms
group.streams.min.heartbeat.interval.ms group.streams.min.session.timeout.ms group.streams.num.standby.replicas
group.streams.session.timeout.ms inter.broker.protocol.version internal.metadata.delete.delay.millis
internal.metadata.log.segment.bytes internal.metadata.max.batch.size.in.bytes kafka.metrics.polling.interval.secs
kafka.metrics.reporters leader.imbalance.check.interval.seconds leader.imbalance.per.broker.percentage
log.cleaner.io.buffer.load.factor log.cleaner.io.buffer.size log.cleaner.threads log.dir.failure.timeout.ms
log.initial.task.delay.ms log.local.retention.bytes log.local.retention.ms log.message.downconversion.enable
log.message.format.version log.preallocate max.connection.creation.rate max.connections.per.ip
max.connections.per.ip.overrides max.incremental.fetch.session.cache.slots metadata.log.dir
metadata.log.max.snapshot.interval.ms metadata.log.segment.bytes metadata.log.segment.ms metadata.max.idle.interval.ms
metadata.max.retention.bytes metadata.max.retention.ms metric.reporters metrics.num.samples metrics.recording.level
metrics.sample.window.ms num.io.threads num.network.threads num.replica.alter.log.dirs.threads num.replica.fetchers
offsets.commit.timeout.ms offsets.load.buffer.size offsets.topic.compression.codec
producer.id.expiration.check.interval.ms producer.purgatory.purge.interval.requests queued.max.requests
quota.window.num quota.window.size.seconds remote.fetch.max.wait.ms remote.list.offsets.request.timeout.ms
remote.log.index.file.cache.total.size.bytes remote.log.index.file.cache.ttl.ms
remote.log.manager.copier.thread.pool.size remote.log.manager.copy.max.bytes.per.second
remote.log.manager.copy.quota.window.num remote.log.manager.copy.quota.window.size.seconds
remote.log.manager.expiration.thread.pool.size remote.log.manager.fetch.max.bytes.per.second
remote.log.manager.fetch.quota.window.num remote.log.manager.fetch.quota.window.size.seconds
remote.log.manager.follower.thread.pool.size remote.log.manager.task.interval.ms
remote.log.manager.task.retry.backoff.max.ms remote.log.manager.task.retry.backoff.ms
remote.log.manager.task.retry.jitter remote.log.manager.thread.pool.size remote.log.metadata.custom.metadata.max.bytes
remote.log.metadata.manager.class.name remote.log.metadata.manager.class.path remote.log.metadata.manager.impl.prefix
remote.log.metadata.manager.listener.name remote.log.reader.max.pending.tasks remote.log.reader.threads
remote.log.storage.manager.class.name remote.log.storage.manager.class.path remote.log.storage.manager.impl.prefix
replica.fetch.backoff.ms replica.fetch.max.bytes replica.fetch.min.bytes replica.fetch.response.max.bytes
replica.fetch.wait.max.ms replica.high.watermark.checkpoint.interval.ms replica.lag.time.max.ms replica.selector.class
replica.socket.receive.buffer.bytes replica.socket.timeout.ms replication.quota.window.num
replication.quota.window.size.seconds request.timeout.ms reserved.broker.max.id sasl.client.callback.handler.class
sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin sasl.kerberos.principal.to.local.rules
sasl.kerberos.service.name sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor
sasl.login.callback.handler.class sasl.login.class sasl.login.connect.timeout.ms sasl.login.read.timeout.ms
sasl.login.refresh.buffer.seconds sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor
sasl.login.refresh.window.jitter sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms
sasl.mechanism.controller.protocol sasl.mechanism.inter.broker.protocol sasl.oauthbearer.assertion.algorithm
sasl.oauthbearer.assertion.claim.aud sasl.oauthbearer.assertion.claim.exp.seconds sasl.oauthbearer.assertion.claim.iss
sasl.oauthbearer.assertion.claim.jti.include sasl.oauthbearer.assertion.claim.nbf.seconds
sasl.oauthbearer.assertion.claim.sub sasl.oauthbearer.assertion.file sasl.oauthbearer.assertion.private.key.file
sasl.oauthbearer.assertion.private.key.passphrase sasl.oauthbearer.assertion.template.file
sasl.oauthbearer.client.credentials.client.id sasl.oauthbearer.client.credentials.client.secret
sasl.oauthbearer.clock.skew.seconds sasl.oauthbearer.expected.audience sasl.oauthbearer.expected.issuer
sasl.oauthbearer.jwks.endpoint.refresh.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms sasl.oauthbearer.jwt.retriever.class
sasl.oauthbearer.jwt.validator.class sasl.oauthbearer.scope sasl.oauthbearer.scope.claim.name
sasl.oauthbearer.sub.claim.name sasl.oauthbearer.token.endpoint.url sasl.server.max.receive.size security.providers
server.max.startup.time.ms share.coordinator.append.linger.ms share.coordinator.cached.buffer.max.bytes
share.coordinator.cold.partition.snapshot.interval.ms share.coordinator.load.buffer.size
share.coordinator.snapshot.update.records.per.snapshot share.coordinator.state.topic.compression.codec
share.coordinator.state.topic.min.isr share.coordinator.state.topic.num.partitions
share.coordinator.state.topic.prune.interval.ms share.coordinator.state.topic.replication.factor
share.coordinator.state.topic.segment.bytes share.coordinator.threads share.coordinator.write.timeout.ms
share.fetch.purgatory.purge.interval.requests socket.connection.setup.timeout.max.ms
socket.connection.setup.timeout.ms socket.listen.backlog.size socket.receive.buffer.bytes socket.send.buffer.bytes
ssl.allow.dn.changes ssl.allow.san.changes ssl.cipher.suites ssl.enabled.protocols
ssl.endpoint.identification.algorithm ssl.keymanager.algorithm ssl.keystore.type ssl.principal.mapping.rules
ssl.protocol ssl.provider ssl.secure.random.implementation ssl.trustmanager.algorithm ssl.truststore.type
telemetry.max.bytes transaction.abort.timed.out.transaction.cleanup.interval.ms
transaction.partition.verification.enable transaction.state.log.load.buffer.size transaction.state.log.min.isr
unclean.leader.election.interval.ms unstable.api.versions.enable unstable.feature.versions.enable zookeeper.connect
zookeeper.connection.timeout.ms zookeeper.session.timeout.ms
"""

TOPIC_SETTINGS_WITHOUT_MEANING: Final = frozenset(_TOPIC.split())
NODE_SETTINGS_WITHOUT_MEANING: Final = frozenset(_NODE.split())


@dataclass(frozen=True, slots=True)
class UnsupportedSetting:
    """A setting of Kafka's that asks for what a node does not do yet."""

    feature: str
    asks: Callable[[str], bool] = bool
    """Whether a value asks for it."""


def _unless(*values: str) -> Callable[[str], bool]:
    return lambda text: text.strip().lower() not in ("", *values)


_TLS: Final = "TLS"
_SASL: Final = "SASL authentication"
_POLICIES: Final = "policies for topics and settings"

UNSUPPORTED_NODE_SETTINGS: Final = {
    "alter.config.policy.class.name": UnsupportedSetting(_POLICIES),
    "authorizer.class.name": UnsupportedSetting("access rules"),
    "client.quota.callback.class": UnsupportedSetting("quotas"),
    "config.providers": UnsupportedSetting("values from config providers"),
    "cordoned.log.dirs": UnsupportedSetting("log directories that take no new partitions"),
    "create.topic.policy.class.name": UnsupportedSetting(_POLICIES),
    "delegation.token.secret.key": UnsupportedSetting("delegation tokens"),
    "principal.builder.class": UnsupportedSetting(
        "principals of its own", _unless("org.apache.kafka.common.security.authenticator.defaultkafkaprincipalbuilder")
    ),
    "remote.log.storage.system.enable": UnsupportedSetting("segments in remote storage", _unless("false")),
    "sasl.enabled.mechanisms": UnsupportedSetting(_SASL, _unless("gssapi")),
    "sasl.jaas.config": UnsupportedSetting(_SASL),
    "sasl.oauthbearer.jwks.endpoint.url": UnsupportedSetting(_SASL),
    "sasl.server.callback.handler.class": UnsupportedSetting(_SASL),
    "security.inter.broker.protocol": UnsupportedSetting("TLS and SASL between brokers", _unless("plaintext")),
    "ssl.client.auth": UnsupportedSetting(_TLS, _unless("none")),
    "ssl.engine.factory.class": UnsupportedSetting(_TLS),
    "ssl.key.password": UnsupportedSetting(_TLS),
    "ssl.keystore.certificate.chain": UnsupportedSetting(_TLS),
    "ssl.keystore.key": UnsupportedSetting(_TLS),
    "ssl.keystore.location": UnsupportedSetting(_TLS),
    "ssl.keystore.password": UnsupportedSetting(_TLS),
    "ssl.truststore.certificates": UnsupportedSetting(_TLS),
    "ssl.truststore.location": UnsupportedSetting(_TLS),
    "ssl.truststore.password": UnsupportedSetting(_TLS),
    "super.users": UnsupportedSetting("access rules"),
    "transaction.two.phase.commit.enable": UnsupportedSetting("two-phase commit of transactions", _unless("false")),
}
