"""The examples do what they say."""

import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_two_clients_read_what_the_other_wrote() -> None:
    ran = subprocess.run(
        [sys.executable, str(EXAMPLES / "orders.py")], capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert "both clients saw the same records at the same offsets" in ran.stdout


def test_each_order_gets_one_invoice_although_a_worker_fails() -> None:
    ran = subprocess.run(
        [sys.executable, str(EXAMPLES / "invoices.py")], capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert "the first worker failed at order 640" in ran.stdout
    assert "read_committed finds 1000 invoices, one per order and in order" in ran.stdout
    assert "read_uncommitted finds 1040" in ran.stdout
