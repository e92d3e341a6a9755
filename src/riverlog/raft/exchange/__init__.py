"""What controllers say to each other, as messages of Kafka's protocol."""
