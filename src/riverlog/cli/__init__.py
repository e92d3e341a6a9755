"""The command line: `riverlog`, also installed as `streaming-system`.

`command_table.py` lists every command; each is a plain function in a module of `commands`, loaded when it is called.
Commands reach a cluster only through the client, so they work with any Kafka-compatible one.
"""
