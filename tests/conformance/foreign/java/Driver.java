import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.PropertyNamingStrategies;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** The Java client, asked over JSON lines: one call per line of standard input, one answer per line of output. */
public final class Driver {
    private static final Duration WAIT = Duration.ofSeconds(15);

    /** The parameters of every call; each call reads those that it knows. JSON carries bytes in base64. */
    record Call(
            String call,
            String topic,
            List<Message> messages,
            String compression,
            int acks,
            boolean idempotent,
            int requestBytesMax,
            int partition,
            int count,
            long offset,
            long timestampMs,
            int partitions,
            short replicas,
            Map<String, String> configs,
            int total,
            long before,
            String name,
            String value,
            String group,
            String protocol,
            int member,
            int writer,
            String transactionalId,
            String output,
            boolean commits) {
        TopicPartition place() {
            return new TopicPartition(topic, partition);
        }
    }

    record Header(String name, byte[] value) {}

    record Message(byte[] value, byte[] key, List<Header> headers, Long timestampMs, Integer partition) {}

    record Stored(int partition, long offset, long timestampMs, byte[] key, byte[] value, List<Header> headers) {}

    record Placed(int partition, long offset) {}

    private final String bootstrap;
    private final Admin admin;
    private final List<KafkaConsumer<byte[], byte[]>> members = new ArrayList<>();
    private final List<KafkaProducer<byte[], byte[]>> writers = new ArrayList<>();

    private Driver(String bootstrap) {
        this.bootstrap = bootstrap;
        this.admin = Admin.create(Map.of(
                "bootstrap.servers", bootstrap,
                "request.timeout.ms", (int) WAIT.toMillis(),
                "default.api.timeout.ms", (int) WAIT.toMillis()));
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream out = System.out;
        System.setOut(System.err); // whoever else prints here must not disturb the conversation
        ObjectMapper json = new ObjectMapper()
                .setPropertyNamingStrategy(PropertyNamingStrategies.SNAKE_CASE)
                .disable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES);
        Driver driver = new Driver(arguments[0]);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            out.println(json.writeValueAsString(driver.answer(json.readValue(line, Call.class))));
            out.flush();
        }
        driver.admin.close();
    }

    private Map<String, Object> answer(Call call) {
        Map<String, Object> answer = new LinkedHashMap<>();
        try {
            answer.put("result", run(call));
        } catch (Exception error) {
            Throwable cause = error instanceof ExecutionException ? error.getCause() : error;
            Errors code = cause instanceof OffsetOutOfRangeException // the consumer's own, which knows no code
                    ? Errors.OFFSET_OUT_OF_RANGE
                    : Errors.forException(cause);
            if (code == Errors.UNKNOWN_SERVER_ERROR || code == Errors.REQUEST_TIMED_OUT) {
                answer.put("failed", cause.toString());
            } else {
                answer.put("refused", code.code());
                answer.put("message", cause.toString());
            }
        }
        return answer;
    }

    private Object run(Call call) throws Exception {
        ConfigResource resource =
                new ConfigResource(ConfigResource.Type.TOPIC, call.topic() == null ? "" : call.topic());
        switch (call.call()) {
            case "produce":
                return produce(call);
            case "consume":
                return consume(call);
            case "offset_for_time":
                try (KafkaConsumer<byte[], byte[]> consumer = consumer()) {
                    return Optional.ofNullable(consumer.offsetsForTimes(Map.of(call.place(), call.timestampMs()))
                                    .get(call.place()))
                            .map(found -> found.offset())
                            .orElse(null);
                }
            case "bounds":
                try (KafkaConsumer<byte[], byte[]> consumer = consumer()) {
                    List<TopicPartition> place = List.of(call.place());
                    return List.of(
                            consumer.beginningOffsets(place).get(call.place()),
                            consumer.endOffsets(place).get(call.place()));
                }
            case "partition_count":
                return done(admin.describeTopics(List.of(call.topic())).allTopicNames())
                        .get(call.topic())
                        .partitions()
                        .size();
            case "create_topic":
                NewTopic topic = new NewTopic(call.topic(), call.partitions(), call.replicas());
                return done(admin.createTopics(List.of(topic.configs(call.configs()))).all());
            case "delete_topic":
                return done(admin.deleteTopics(List.of(call.topic())).all());
            case "topics":
                return done(admin.listTopics().names());
            case "create_partitions":
                NewPartitions total = NewPartitions.increaseTo(call.total());
                return done(admin.createPartitions(Map.of(call.topic(), total)).all());
            case "delete_records":
                RecordsToDelete before = RecordsToDelete.beforeOffset(call.before());
                return done(admin.deleteRecords(Map.of(call.place(), before))
                                .lowWatermarks()
                                .get(call.place()))
                        .lowWatermark();
            case "configs":
                Map<String, String> configs = new HashMap<>();
                for (ConfigEntry entry : done(admin.describeConfigs(List.of(resource)).all())
                        .get(resource)
                        .entries()) {
                    configs.put(entry.name(), entry.value());
                }
                return configs;
            case "alter_config":
                AlterConfigOp change =
                        new AlterConfigOp(new ConfigEntry(call.name(), call.value()), AlterConfigOp.OpType.SET);
                return done(admin.incrementalAlterConfigs(Map.of(resource, List.of(change))).all());
            case "join":
                members.add(member(call));
                return members.size() - 1;
            case "poll":
                List<Placed> read = new ArrayList<>();
                members.get(call.member())
                        .poll(Duration.ofMillis(200))
                        .forEach(record -> read.add(new Placed(record.partition(), record.offset())));
                return read;
            case "commit":
                members.get(call.member()).commitSync(WAIT);
                return null;
            case "leave":
                members.get(call.member()).close();
                return null;
            case "transactional":
                writers.add(writer(call));
                return writers.size() - 1;
            case "begin":
                writers.get(call.writer()).beginTransaction();
                return null;
            case "write":
                byte[] value = Base64.getDecoder().decode(call.value());
                writers.get(call.writer())
                        .send(new ProducerRecord<>(call.topic(), 0, null, value))
                        .get(WAIT.toMillis(), TimeUnit.MILLISECONDS);
                return null;
            case "end":
                end(writers.get(call.writer()), call.commits());
                return null;
            case "copy":
                copy(call);
                return null;
            default:
                throw new IllegalArgumentException("unknown call " + call.call());
        }
    }

    private List<Placed> produce(Call call) throws Exception {
        Map<String, Object> settings = Map.of(
                "bootstrap.servers", bootstrap,
                "acks", String.valueOf(call.acks()),
                "compression.type", call.compression(),
                "enable.idempotence", call.idempotent(),
                "linger.ms", 2,
                "max.request.size", call.requestBytesMax(),
                "max.block.ms", WAIT.toMillis());
        List<Placed> placed = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> producer =
                new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (Message message : call.messages()) {
                ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(
                        call.topic(), message.partition(), message.timestampMs(), message.key(), message.value());
                for (Header header : message.headers()) {
                    record.headers().add(new RecordHeader(header.name(), header.value()));
                }
                sent.add(producer.send(record));
            }
            for (Future<RecordMetadata> future : sent) {
                RecordMetadata metadata = future.get(WAIT.toMillis(), TimeUnit.MILLISECONDS);
                placed.add(new Placed(metadata.partition(), metadata.offset()));
            }
        }
        return placed;
    }

    private List<Stored> consume(Call call) throws Exception {
        List<Stored> records = new ArrayList<>();
        long deadline = System.nanoTime() + WAIT.toNanos();
        try (KafkaConsumer<byte[], byte[]> consumer = consumer()) {
            consumer.assign(List.of(call.place()));
            consumer.seek(call.place(), call.offset());
            while (records.size() < call.count()) {
                if (System.nanoTime() > deadline) {
                    throw new TimeoutException(records.size() + " of " + call.count() + " records came");
                }
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200))) {
                    List<Header> headers = new ArrayList<>();
                    record.headers().forEach(header -> headers.add(new Header(header.key(), header.value())));
                    records.add(new Stored(
                            record.partition(),
                            record.offset(),
                            record.timestamp(),
                            record.key(),
                            record.value(),
                            headers));
                }
            }
        }
        return records.subList(0, call.count());
    }

    private void copy(Call call) throws Exception {
        long deadline = System.nanoTime() + WAIT.toNanos();
        try (KafkaConsumer<byte[], byte[]> consumer = member(call);
                KafkaProducer<byte[], byte[]> producer = writer(call)) {
            producer.beginTransaction();
            OffsetAndMetadata next = null;
            for (int copied = 0; copied < call.count(); ) {
                if (System.nanoTime() > deadline) {
                    throw new TimeoutException(copied + " of " + call.count() + " records came");
                }
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200))) {
                    if (copied < call.count()) {
                        producer.send(new ProducerRecord<>(call.output(), 0, null, record.value()));
                        next = new OffsetAndMetadata(record.offset() + 1);
                        copied++;
                    }
                }
            }
            producer.sendOffsetsToTransaction(Map.of(call.place(), next), consumer.groupMetadata());
            producer.flush();
            end(producer, call.commits());
        }
    }

    private KafkaProducer<byte[], byte[]> writer(Call call) {
        Map<String, Object> settings = Map.of(
                "bootstrap.servers", bootstrap,
                "transactional.id", call.transactionalId(),
                "max.block.ms", WAIT.toMillis());
        KafkaProducer<byte[], byte[]> writer =
                new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
        writer.initTransactions();
        return writer;
    }

    private static void end(KafkaProducer<byte[], byte[]> producer, boolean commits) {
        if (commits) {
            producer.commitTransaction();
        } else {
            producer.abortTransaction();
        }
    }

    private KafkaConsumer<byte[], byte[]> member(Call call) {
        Map<String, Object> settings = new HashMap<>(Map.of(
                "bootstrap.servers", bootstrap,
                "group.id", call.group(),
                "group.protocol", call.protocol(),
                "auto.offset.reset", "earliest",
                "enable.auto.commit", false,
                "fetch.max.wait.ms", 50,
                "default.api.timeout.ms", (int) WAIT.toMillis()));
        if (call.protocol().equals("classic")) {
            settings.put("heartbeat.interval.ms", 200);
        }
        KafkaConsumer<byte[], byte[]> member =
                new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        member.subscribe(List.of(call.topic()));
        return member;
    }

    private KafkaConsumer<byte[], byte[]> consumer() {
        Map<String, Object> settings = Map.of(
                "bootstrap.servers", bootstrap,
                "auto.offset.reset", "none",
                "allow.auto.create.topics", false,
                "fetch.max.wait.ms", 50, // a consumer that closes waits for its last fetch
                "default.api.timeout.ms", (int) WAIT.toMillis());
        return new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    private static <T> T done(KafkaFuture<T> future) throws Exception {
        return future.get(WAIT.toMillis(), TimeUnit.MILLISECONDS);
    }
}
