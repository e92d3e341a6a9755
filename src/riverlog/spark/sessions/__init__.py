"""Sessions of Spark: made with the right settings and a Java, and reported on to nodes."""
