"""A load to judge by: producers, transactions, group members and readers at work on a live cluster."""
