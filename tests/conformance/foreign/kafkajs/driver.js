/**
 * KafkaJS, asked over JSON lines: one call per line of standard input, one answer per line of standard output.
 *
 * KafkaJS reads only as a member of a group. Reading single partitions here goes one level lower, through the broker
 * object that its consumer fetches with: the same requests, decoding and codecs, without the group.
 */
'use strict'

const readline = require('node:readline')
const { CompressionCodecs, CompressionTypes, ConfigResourceTypes, Kafka, Partitioners, logLevel } = require('kafkajs')
const SnappyCodec = require('kafkajs-snappy')
const lz4 = require('lz4-napi')
const { ZstdCodec } = require('zstd-codec')

const WAIT_MS = 15_000
const FETCH_BYTES = 8 * 1024 * 1024
const EARLIEST = -2
const LATEST = -1
const TOPIC_ALREADY_EXISTS = 36

const kafka = new Kafka({
  clientId: 'conformance',
  brokers: [process.argv[2]],
  logLevel: logLevel.NOTHING,
  connectionTimeout: WAIT_MS,
  retry: { initialRetryTime: 50, maxRetryTime: 500, retries: 5 },
})
const createCluster = Object.getOwnPropertySymbols(kafka).find((symbol) => symbol.description.endsWith('createCluster'))
const admin = kafka.admin({ retry: { initialRetryTime: 20, retries: 2 } })

const members = []
const writers = []

const calls = {
  async join({ topic, group }) {
    const consumer = kafka.consumer({ groupId: group, heartbeatInterval: 200, maxWaitTimeInMs: 50 })
    const member = { consumer, topic, read: [], given: [] }
    await consumer.connect()
    await consumer.subscribe({ topics: [topic], fromBeginning: true })
    const eachMessage = async ({ partition, message }) => member.read.push({ partition, offset: Number(message.offset) })
    consumer.run({ autoCommit: false, eachMessage }).catch((error) => (member.trouble = error))
    return members.push(member) - 1
  },

  async poll({ member }) {
    const one = members[member]
    await new Promise((resolve) => setTimeout(resolve, 100))
    if (one.trouble) throw one.trouble
    const read = one.read.splice(0)
    one.given.push(...read)
    return read
  },

  commit: async ({ member }) => {
    const { consumer, topic, given } = members[member]
    const next = new Map(given.map(({ partition, offset }) => [partition, offset + 1]))
    await consumer.commitOffsets([...next].map(([partition, offset]) => ({ topic, partition, offset: String(offset) })))
    given.length = 0
  },

  leave: ({ member }) => members[member].consumer.disconnect(),

  async produce({ topic, messages, compression, acks, idempotent }) {
    const producer = kafka.producer({
      createPartitioner: Partitioners.DefaultPartitioner,
      idempotent,
      maxInFlightRequests: idempotent ? 1 : null,
    })
    await producer.connect()
    try {
      const types = { none: 'None', gzip: 'GZIP', snappy: 'Snappy', lz4: 'LZ4', zstd: 'ZSTD' }
      const sent = await producer.send({
        topic,
        acks,
        compression: CompressionTypes[types[compression]],
        messages: messages.map((message) => ({
          value: bytes(message.value),
          key: bytes(message.key),
          headers: asObject(message.headers),
          ...(message.partition === null ? {} : { partition: message.partition }),
          ...(message.timestamp_ms === null ? {} : { timestamp: String(message.timestamp_ms) }),
        })),
      })
      return places(messages, sent, acks)
    } finally {
      await producer.disconnect()
    }
  },

  async transactional({ transactional_id }) {
    const producer = transactionalProducer(transactional_id)
    await producer.connect()
    return writers.push({ producer }) - 1
  },

  async begin({ writer }) {
    writers[writer].transaction = await writers[writer].producer.transaction()
  },

  async write({ writer, topic, value }) {
    await writers[writer].transaction.send({ topic, messages: [{ value: bytes(value), partition: 0 }] })
  },

  end: ({ writer, commits }) => end(writers[writer].transaction, commits),

  async copy({ topic, output, group, transactional_id, count, commits }) {
    const producer = transactionalProducer(transactional_id)
    const consumer = kafka.consumer({ groupId: group, heartbeatInterval: 200, maxWaitTimeInMs: 50 })
    await Promise.all([producer.connect(), consumer.connect()])
    try {
      await consumer.subscribe({ topics: [topic], fromBeginning: true })
      const transaction = await producer.transaction()
      let copied = 0
      await new Promise((resolve, reject) => {
        const eachMessage = async ({ partition, message }) => {
          if (copied === count) return
          await transaction.send({ topic: output, messages: [{ value: message.value, partition: 0 }] })
          if (++copied < count) return
          const partitions = [{ partition, offset: String(Number(message.offset) + 1) }]
          await transaction.sendOffsets({ consumerGroupId: group, topics: [{ topic, partitions }] })
          resolve()
        }
        consumer.run({ autoCommit: false, eachMessage }).catch(reject)
        consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error))
      })
      await end(transaction, commits)
    } finally {
      await Promise.all([producer.disconnect(), consumer.disconnect()])
    }
  },

  consume: ({ topic, partition, count, offset }) =>
    withLeader(topic, partition, async (broker) => {
      const records = []
      const deadline = Date.now() + WAIT_MS
      while (records.length < count) {
        if (Date.now() > deadline) throw new Error(`${records.length} of ${count} records came`)
        const position = records.length ? records.at(-1).offset + 1 : offset
        const partitions = [{ partition, fetchOffset: String(position), maxBytes: FETCH_BYTES }]
        const { responses } = await broker.fetch({ maxWaitTime: 200, topics: [{ topic, partitions }] })
        for (const message of responses[0].partitions[0].messages) {
          if (Number(message.offset) >= position && records.length < count) {
            records.push({
              partition,
              offset: Number(message.offset),
              timestamp_ms: Number(message.timestamp),
              key: text(message.key),
              value: text(message.value),
              headers: asList(message.headers),
            })
          }
        }
      }
      return records
    }),

  offset_for_time: async ({ topic, partition, timestamp_ms }) => {
    const offset = await listed(topic, partition, timestamp_ms)
    return offset < 0 ? null : offset
  },

  bounds: async ({ topic, partition }) => [
    await listed(topic, partition, EARLIEST),
    await listed(topic, partition, LATEST),
  ],

  partition_count: async ({ topic }) => {
    const { topics } = await admin.fetchTopicMetadata({ topics: [topic] })
    return topics[0].partitions.length
  },

  create_topic: async ({ topic, partitions, replicas, configs }) => {
    const configEntries = Object.entries(configs).map(([name, value]) => ({ name, value }))
    const asked = { topic, numPartitions: partitions, replicationFactor: replicas, configEntries }
    if (!(await admin.createTopics({ topics: [asked] }))) {
      throw Object.assign(new Error('KafkaJS answers false'), { code: TOPIC_ALREADY_EXISTS })
    }
  },

  delete_topic: ({ topic }) => admin.deleteTopics({ topics: [topic] }),

  topics: () => admin.listTopics(),

  create_partitions: ({ topic, total }) => admin.createPartitions({ topicPartitions: [{ topic, count: total }] }),

  delete_records: async ({ topic, partition, before }) => {
    await admin.fetchTopicOffsets(topic) // deleteTopicRecords knows the leaders only of topics that were met before
    await admin.deleteTopicRecords({ topic, partitions: [{ partition, offset: String(before) }] })
    return listed(topic, partition, EARLIEST) // KafkaJS keeps the answer to itself
  },

  configs: async ({ topic }) => {
    const { resources } = await admin.describeConfigs({
      resources: [{ type: ConfigResourceTypes.TOPIC, name: topic }],
    })
    return Object.fromEntries(resources[0].configEntries.map((entry) => [entry.configName, entry.configValue]))
  },

  alter_config: ({ topic, name, value }) =>
    admin.alterConfigs({
      resources: [{ type: ConfigResourceTypes.TOPIC, name: topic, configEntries: [{ name, value }] }],
    }),
}

function transactionalProducer(transactionalId) {
  const createPartitioner = Partitioners.DefaultPartitioner
  return kafka.producer({ transactionalId, idempotent: true, maxInFlightRequests: 1, createPartitioner })
}

function end(transaction, commits) {
  return commits ? transaction.commit() : transaction.abort()
}

/** Say where each message lies: KafkaJS tells the first offset of each partition, in which they lie in order. */
function places(messages, sent, acks) {
  const next = new Map(sent.map(({ partition, baseOffset }) => [partition, Number(baseOffset)]))
  return messages.map(({ partition }) => {
    if (acks === 0) return { partition: partition ?? -1, offset: -1 }
    if (partition === null && next.size > 1) return { partition: -1, offset: -1 } // it does not tell which went where
    const place = partition ?? sent[0].partition
    const offset = next.get(place)
    next.set(place, offset + 1)
    return { partition: place, offset }
  })
}

function listed(topic, partition, timestamp) {
  return withLeader(topic, partition, async (broker) => {
    const partitions = [{ partition, timestamp: String(timestamp) }]
    const { responses } = await broker.listOffsets({ replicaId: -1, topics: [{ topic, partitions }] })
    return Number(responses[0].partitions[0].offset)
  })
}

async function withLeader(topic, partition, work) {
  const cluster = kafka[createCluster]({ allowAutoTopicCreation: false })
  await cluster.connect()
  try {
    await cluster.addTargetTopic(topic)
    const [nodeId] = Object.keys(cluster.findLeaderForPartitions(topic, [partition]))
    return await work(await cluster.findBroker({ nodeId }))
  } finally {
    await cluster.disconnect()
  }
}

function bytes(encoded) {
  return encoded === null ? null : Buffer.from(encoded, 'base64')
}

function text(value) {
  return value === null ? null : Buffer.from(value).toString('base64')
}

function asObject(headers) {
  const object = {}
  for (const { name, value } of headers) object[name] = [...(object[name] ?? []), bytes(value)]
  return object
}

function asList(headers) {
  return Object.entries(headers).flatMap(([name, values]) =>
    [].concat(values).map((value) => ({ name, value: text(value) }))
  )
}

/** Find the broker's error code, however deep KafkaJS wrapped it. */
function codeOf(error) {
  if (Number.isInteger(error?.code)) return error.code
  const inner = [error?.cause, error?.originalError, error?.error, ...(error?.errors ?? []), ...(error?.partitions ?? [])]
  return inner.filter(Boolean).map(codeOf).find(Number.isInteger)
}

async function answer({ call, ...parameters }) {
  try {
    return { result: (await calls[call](parameters)) ?? null }
  } catch (error) {
    const code = codeOf(error)
    return code === undefined ? { failed: error.stack } : { refused: code, message: error.message }
  }
}

async function main() {
  const zstd = await new Promise((resolve) => ZstdCodec.run((module) => resolve(new module.Streaming())))
  CompressionCodecs[CompressionTypes.Snappy] = SnappyCodec
  CompressionCodecs[CompressionTypes.LZ4] = () => ({
    compress: ({ buffer }) => lz4.compressFrame(buffer),
    decompress: (buffer) => lz4.decompressFrame(buffer),
  })
  CompressionCodecs[CompressionTypes.ZSTD] = () => ({
    compress: async ({ buffer }) => Buffer.from(zstd.compress(buffer)),
    decompress: async (buffer) => Buffer.from(zstd.decompress(buffer)),
  })
  await admin.connect()
  for await (const line of readline.createInterface({ input: process.stdin })) {
    process.stdout.write(`${JSON.stringify(await answer(JSON.parse(line)))}\n`)
  }
  await admin.disconnect()
}

main()
