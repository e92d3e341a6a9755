"""The log engine: partitions as folders of segments in Kafka's file layout, reached only through the Disk port."""
