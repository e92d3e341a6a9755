"""Names that Kafka knows and that mean nothing here: files written for Kafka may keep them.

A node lists those it was given in one warning. What promises protection (authorizers, TLS, SASL) is not here on
purpose: a node that cannot give it must not start as if it did.
"""

from typing import Final

_TOPIC: Final = """
compression.gzip.level compression.lz4.level compression.zstd.level
follower.replication.throttled.replicas leader.replication.throttled.replicas
message.downconversion.enable message.format.version preallocate unclean.leader.election.enable
local.retention.bytes local.retention.ms remote.log.copy.disable remote.log.delete.on.disable
remote.storage.enable
"""

_NODE: Final = """
alter.config.policy.class.name alter.log.dirs.replication.quota.window.num
alter.log.dirs.replication.quota.window.size.seconds auto.include.jmx.reporter auto.leader.rebalance.enable
background.threads broker.heartbeat.interval.ms broker.id broker.id.generation.enable
broker.session.timeout.ms client.quota.callback.class compression.gzip.level compression.lz4.level
compression.zstd.level connection.failed.authentication.delay.ms connections.max.reauth.ms
control.plane.listener.name controlled.shutdown.enable controlled.shutdown.max.retries
controlled.shutdown.retry.backoff.ms controller.performance.always.log.threshold.ms
controller.performance.sample.period.ms controller.quorum.append.linger.ms
controller.quorum.auto.join.enable controller.quorum.bootstrap.servers
controller.quorum.election.backoff.max.ms controller.quorum.election.timeout.ms
controller.quorum.fetch.timeout.ms controller.quorum.request.timeout.ms controller.quorum.retry.backoff.ms
controller.quorum.voters controller.quota.window.num controller.quota.window.size.seconds
controller.socket.timeout.ms create.topic.policy.class.name fetch.purgatory.purge.interval.requests
group.consumer.assignor.offload.enable group.consumer.max.assignment.interval.ms
group.consumer.max.heartbeat.interval.ms group.consumer.max.session.timeout.ms
group.consumer.min.assignment.interval.ms group.consumer.min.heartbeat.interval.ms
group.consumer.min.session.timeout.ms group.consumer.regex.refresh.interval.ms
group.coordinator.append.linger.ms group.coordinator.rebalance.protocols group.coordinator.threads
initial.broker.registration.timeout.ms inter.broker.listener.name inter.broker.protocol.version
kafka.metrics.polling.interval.secs kafka.metrics.reporters leader.imbalance.check.interval.seconds
leader.imbalance.per.broker.percentage log.cleaner.io.buffer.load.factor log.cleaner.io.buffer.size
log.cleaner.threads log.dir.failure.timeout.ms log.initial.task.delay.ms
log.local.retention.bytes log.local.retention.ms
log.message.downconversion.enable log.message.format.version log.preallocate
max.connection.creation.rate max.connections.per.ip max.connections.per.ip.overrides
max.incremental.fetch.session.cache.slots metadata.log.dir metadata.log.max.snapshot.interval.ms
metadata.log.segment.bytes metadata.log.segment.ms metadata.max.idle.interval.ms
metadata.max.retention.bytes metadata.max.retention.ms metric.reporters metrics.num.samples
metrics.recording.level metrics.sample.window.ms num.io.threads num.network.threads
num.replica.alter.log.dirs.threads num.replica.fetchers
offsets.commit.timeout.ms offsets.load.buffer.size offsets.topic.compression.codec process.roles
producer.id.expiration.check.interval.ms producer.purgatory.purge.interval.requests
queued.max.requests quota.window.num quota.window.size.seconds remote.log.manager.thread.pool.size
remote.log.storage.system.enable replica.fetch.backoff.ms replica.fetch.max.bytes replica.fetch.min.bytes
replica.fetch.response.max.bytes replica.fetch.wait.max.ms
replica.high.watermark.checkpoint.interval.ms replica.lag.time.max.ms replica.selector.class
replica.socket.receive.buffer.bytes replica.socket.timeout.ms replication.quota.window.num
replication.quota.window.size.seconds request.timeout.ms reserved.broker.max.id
server.max.startup.time.ms socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms
socket.listen.backlog.size socket.receive.buffer.bytes socket.send.buffer.bytes
telemetry.max.bytes transaction.abort.timed.out.transaction.cleanup.interval.ms
transaction.partition.verification.enable transaction.state.log.load.buffer.size transaction.state.log.min.isr
unclean.leader.election.enable
unstable.api.versions.enable unstable.feature.versions.enable zookeeper.connect
zookeeper.connection.timeout.ms zookeeper.session.timeout.ms
"""

TOPIC_SETTINGS_WITHOUT_MEANING: Final = frozenset(_TOPIC.split())
NODE_SETTINGS_WITHOUT_MEANING: Final = frozenset(_NODE.split())
