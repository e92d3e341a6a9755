"""What Spark writes: rows sent as records, and the strategies by which a batch becomes visible once."""
