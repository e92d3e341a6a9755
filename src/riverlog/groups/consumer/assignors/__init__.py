"""Who of a group reads which partition, decided on the server: pure functions of subscriptions and partition counts."""
