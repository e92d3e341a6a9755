"""The package's front: the client by its short names, and nothing loaded before it is used."""

import subprocess
import sys

import pytest

import riverlog


def test_the_short_names_lead_to_the_client() -> None:
    from riverlog.client.producer.producer import Producer

    assert riverlog.Producer is Producer
    assert {riverlog.Consumer.__name__, riverlog.Admin.__name__} == {"Consumer", "Admin"}
    assert set(riverlog.__all__) <= set(dir(riverlog))
    with pytest.raises(AttributeError, match="no attribute 'Prodcuer'"):
        _ = riverlog.Prodcuer


def test_importing_the_package_loads_nothing_else() -> None:
    program = "import sys, riverlog; print([name for name in sys.modules if name.startswith('riverlog.')])"
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == "[]"
