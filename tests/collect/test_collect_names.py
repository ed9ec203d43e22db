"""What people type, and what a device must not need."""

import subprocess
import sys

import pytest

import kveil.collect


def test_every_listed_name_is_there():
    for name in kveil.collect.__all__:
        assert getattr(kveil.collect, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute"):
        kveil.collect.Broker  # noqa: B018


def test_neither_a_device_nor_a_simulation_loads_a_database_library():
    """SQLAlchemy is the collector's; a simulation needs no signatures either."""
    code = "import sys, kveil.collect.client, kveil.models.local_kmeans\n"
    code += "print('sqlalchemy' in sys.modules, 'cryptography' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


@pytest.mark.parametrize(
    ("library", "code"),
    [
        ("cryptography", "kveil.collect.LocalClient(None, n_features=2, key='ab' * 32)"),
        ("cryptography", "kveil.collect.SigningKey(bytes(32))"),
        ("sqlalchemy", "kveil.collect.Collector('x.db')"),
    ],
)
def test_a_missing_library_is_named_with_what_to_install(library, code, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, library, None)
    for name in [name for name in sys.modules if name.startswith(f"{library}.")]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(kveil.errors.MissingExtra, match=r"kveil\[service\]"):
        eval(code)
