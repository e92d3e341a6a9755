"""Where pure machines and the log meet asyncio: partitions, flushing, upkeep, the driver of replicated machines."""
