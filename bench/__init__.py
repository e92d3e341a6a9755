"""riverlog and Apache Kafka measured in one run: `python -m bench`, explained in docs/performance.md."""
