"""A real broker inside the test process, on a free port and in a temporary folder.

With pytest the fixtures `riverlog_broker` (a fresh broker per test) and `riverlog_broker_session` (one for all
tests) are there as soon as riverlog is installed; with anything else use `running_broker`. The broker has a
thread and an event loop of its own, so tests may block as they like. Importing this module costs next to
nothing: the broker is imported when the first test asks for one.
"""
