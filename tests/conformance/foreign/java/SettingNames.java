import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.server.config.AbstractKafkaConfig;
import org.apache.kafka.storage.internals.log.LogConfig;

/** Prints the names of Kafka's settings: of brokers, of topics, and of clients. */
public class SettingNames {
    public static void main(String[] arguments) {
        for (String name : AbstractKafkaConfig.CONFIG_DEF.names()) {
            System.out.println("broker " + name);
        }
        for (String name : LogConfig.configNames()) {
            System.out.println("topic " + name);
        }
        for (String name : AdminClientConfig.configNames()) {
            System.out.println("client " + name);
        }
        for (String name : ConsumerConfig.configNames()) {
            System.out.println("client " + name);
        }
        for (String name : ProducerConfig.configNames()) {
            System.out.println("client " + name);
        }
    }
}
