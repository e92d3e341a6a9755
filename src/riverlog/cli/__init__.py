"""The command line: `riverlog`, also installed as `streaming-system`.

`commands.py` lists every command; each is a plain function in a module of its own, loaded when it is called.
Commands reach a cluster only through the client, so they work with any Kafka-compatible one.
"""
