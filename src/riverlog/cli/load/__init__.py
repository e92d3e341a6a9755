"""The load of `bench`: client processes started together, and latencies counted in bounded memory."""
