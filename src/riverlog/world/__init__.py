"""The ports, for real: the machine's clock, disk, network and threads. Only the composition roots hand these out."""
