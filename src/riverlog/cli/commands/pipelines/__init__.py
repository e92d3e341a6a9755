"""The commands of `pipelines`: queries of Spark run, listed, looked into, stopped and reset."""
