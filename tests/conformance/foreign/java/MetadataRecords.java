import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/** Reads metadata records, one a line in hexadecimal digits, and prints each as Apache Kafka writes it again. */
public class MetadataRecords {
    public static void main(String[] arguments) throws Exception {
        MetadataRecordSerde serde = new MetadataRecordSerde();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            byte[] bytes = HexFormat.of().parseHex(line);
            ApiMessageAndVersion record = serde.read(new ByteBufferAccessor(ByteBuffer.wrap(bytes)), bytes.length);
            ObjectSerializationCache cache = new ObjectSerializationCache();
            ByteBuffer written = ByteBuffer.allocate(serde.recordSize(record, cache));
            serde.write(record, cache, new ByteBufferAccessor(written));
            System.out.println(HexFormat.of().formatHex(written.array()) + " "
                + record.message().getClass().getSimpleName() + " " + record.message().unknownTaggedFields().size());
        }
    }
}
