import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.controller.PartitionChangeBuilder;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.MetadataVersion;

/** Prints what Apache Kafka's controller makes of partitions: one case a line, one answer a line, fields between tabs. */
public class Elections {
    public static void main(String[] arguments) throws Exception {
        BufferedReader cases = new BufferedReader(new InputStreamReader(System.in));
        for (String line = cases.readLine(); line != null; line = cases.readLine()) {
            System.out.println(answer(line.split("\t", -1)));
        }
    }

    private static String answer(String[] fields) {
        List<Integer> replicas = ids(fields[0]);
        Uuid[] directories = replicas.stream().map(id -> new Uuid(0, 1000 + id)).toArray(Uuid[]::new);
        PartitionRegistration partition = new PartitionRegistration.Builder()
            .setReplicas(array(fields[0]))
            .setIsr(array(fields[1]))
            .setAddingReplicas(array(fields[2]))
            .setRemovingReplicas(array(fields[3]))
            .setElr(array(fields[4]))
            .setLastKnownElr(array(fields[5]))
            .setLeader(Integer.parseInt(fields[6]))
            .setLeaderRecoveryState(LeaderRecoveryState.of(Byte.parseByte(fields[7])))
            .setDirectories(directories)
            .setLeaderEpoch(5)
            .setPartitionEpoch(9)
            .build();
        Set<Integer> present = new HashSet<>(ids(fields[8]));
        PartitionChangeBuilder builder = new PartitionChangeBuilder(
            partition, new Uuid(0, 7), 0, present::contains, MetadataVersion.fromFeatureLevel((short) 30),
            Integer.parseInt(fields[9]), fields[10].equals("true"));
        builder.setElection(PartitionChangeBuilder.Election.valueOf(fields[11]));
        builder.setDefaultDirProvider(id -> new Uuid(0, 2000 + id));
        if (!fields[12].equals("-")) builder.setTargetIsr(ids(fields[12]));
        if (!fields[13].equals("-")) builder.setTargetReplicas(ids(fields[13]));
        if (!fields[14].equals("-")) builder.setTargetAdding(ids(fields[14]));
        if (!fields[15].equals("-")) builder.setTargetRemoving(ids(fields[15]));
        if (!fields[16].equals("-")) {
            builder.setTargetLeaderRecoveryState(LeaderRecoveryState.of(Byte.parseByte(fields[16])));
        }
        if (!fields[17].isEmpty()) builder.setUncleanShutdownReplicas(ids(fields[17]));
        Optional<ApiMessageAndVersion> built = builder.build();
        if (built.isEmpty()) return "";
        PartitionChangeRecord record = (PartitionChangeRecord) built.get().message();
        List<Long> places = null;
        if (record.directories() != null) {
            places = new ArrayList<>();
            for (Uuid each : record.directories()) places.add(each.getLeastSignificantBits());
        }
        return String.join("\t", text(record.isr()), String.valueOf(record.leader()), text(record.replicas()),
            text(record.addingReplicas()), text(record.removingReplicas()),
            String.valueOf(record.leaderRecoveryState()), text(places), text(record.eligibleLeaderReplicas()),
            text(record.lastKnownElr()));
    }

    private static List<Integer> ids(String field) {
        List<Integer> ids = new ArrayList<>();
        if (!field.isEmpty()) for (String each : field.split(",")) ids.add(Integer.parseInt(each));
        return ids;
    }

    private static int[] array(String field) {
        return ids(field).stream().mapToInt(each -> each).toArray();
    }

    private static String text(List<?> values) {
        if (values == null) return "-";
        List<String> texts = new ArrayList<>();
        for (Object each : values) texts.add(String.valueOf(each));
        return String.join(",", texts);
    }
}
