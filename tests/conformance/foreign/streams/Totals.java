import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

/** Adds up values per account exactly once: BOOTSTRAP APPLICATION SOURCE TARGET STATE. Values are "account,amount". */
public final class Totals {
    private static final int THREADS = 2;
    private static final Duration CLOSE = Duration.ofSeconds(20);

    public static void main(String[] arguments) {
        Properties settings = new Properties();
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[0]);
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, arguments[1]);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, arguments[4]);
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, THREADS);
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0); // so that each record has a result of its own
        settings.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        settings.put(ConsumerConfig.SESSION_TIMEOUT_MS_CONFIG, "6000");
        settings.put(ConsumerConfig.HEARTBEAT_INTERVAL_MS_CONFIG, "500");
        KafkaStreams streams = new KafkaStreams(totals(arguments[2], arguments[3]).build(), settings);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> streams.close(CLOSE)));
        streams.setStateListener((now, before) -> System.out.println(now));
        streams.start();
    }

    private static StreamsBuilder totals(String source, String target) {
        Serde<String> text = Serdes.String();
        Serde<Long> number = Serdes.Long();
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(source, Consumed.with(text, text))
                .selectKey((key, value) -> value.split(",")[0]) // a new key: the records travel through a topic of their own
                .mapValues(value -> Long.parseLong(value.split(",")[1]))
                .groupByKey(Grouped.with(text, number))
                .reduce(Long::sum, Materialized.with(text, number))
                .toStream()
                .mapValues(total -> Long.toString(total))
                .to(target, Produced.with(text, text));
        return builder;
    }
}
