"""The load generator is C: without a compiler there is nothing to test, and the benchmark says NOT RUN."""

import shutil

collect_ignore = [] if shutil.which("cc") else ["test_loadgen.py"]
