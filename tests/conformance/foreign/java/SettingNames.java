import org.apache.kafka.server.config.AbstractKafkaConfig;
import org.apache.kafka.storage.internals.log.LogConfig;

/** Prints the names of Kafka's settings: of brokers, then of topics. */
public class SettingNames {
    public static void main(String[] arguments) {
        for (String name : AbstractKafkaConfig.CONFIG_DEF.names()) {
            System.out.println("broker " + name);
        }
        for (String name : LogConfig.configNames()) {
            System.out.println("topic " + name);
        }
    }
}
