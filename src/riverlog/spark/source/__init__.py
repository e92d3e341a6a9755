"""What Spark reads: batches and streams planned, and fetched by tasks."""
