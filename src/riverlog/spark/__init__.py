"""The door to Spark: topics as its sources and sinks, without a jar.

`pyspark_riverlog` lets Spark find the format `riverlog` by itself. This room speaks to a cluster through the client
alone, so it works with any that speaks Kafka's protocol; what only a riverlog node offers says so where it is used.
"""
