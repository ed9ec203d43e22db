"""The files that docs/deployment.md shows are what their programs read, and name options and metrics that there are."""

import json
import os
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from serving import serving

from kveil.collect.storage import Storage
from kveil.service.counts import Counts

PAGE = (Path(__file__).parents[2] / "docs" / "deployment.md").read_text(encoding="utf-8")


def block(language, beginning):
    (found,) = [text for text in re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.S) if text.startswith(beginning)]
    return found


def options():
    """Of `kveil collect serve`, as its code has them: help is cut to the terminal."""
    import typer.main

    from kveil.cli.collect import app

    serve = typer.main.get_command(app).commands["serve"]
    return {option for one in serve.params for option in one.opts}


def test_options_of_serve_are_those_of_the_command():
    unit, container = block("ini", "[Unit]"), block("dockerfile", "FROM")
    entry, given = (json.loads(re.search(rf"{name} (\[.*\])", container)[1]) for name in ("ENTRYPOINT", "\nCMD"))
    assert entry == ["kveil", "collect", "serve"]
    named = {*re.findall(r"--[a-z-]+", unit), *(one for one in given if one.startswith("--"))}
    named |= set(re.findall(r"`(--[a-z-]+)", PAGE)) | {"--auto-close", "--key", "--origin"}
    assert named - {"--serial"} <= options()


def test_the_container_is_healthy_while_the_service_is_ready(tmp_path):
    program, *arguments = json.loads(re.search(r"HEALTHCHECK CMD (\[.*\])", block("dockerfile", "FROM"))[1])
    assert program == "python"

    def is_healthy(port):
        command = [sys.executable, *(one.replace("8080", str(port)) for one in arguments)]
        return subprocess.run(command, capture_output=True).returncode == 0

    with serving(tmp_path / "collector.db") as service:
        assert is_healthy(service.port)
        port = service.port
    assert not is_healthy(port)


def test_metrics_are_those_of_the_service():
    told = Counts().text([{"campaign": "x", "round": 1, "reports": 1, "least": 1, "days_left": 1, "stuck": 0}])
    named = set(re.findall(r"`(kveil_[a-z_]+)", PAGE))
    assert len(named) >= 5
    assert {name for name in named if name not in told} == set()


def test_postgresql_takes_every_setting(postgresql):
    lines = [line.split(" = ") for line in block("ini", "fsync").splitlines()]
    storage = Storage(postgresql.database())
    with storage._alone() as db:
        known = {name for (name,) in db.exec_driver_sql("SELECT name FROM pg_settings")}
        kept = db.exec_driver_sql("SELECT pg_read_file('postgresql.auto.conf')").scalar_one()
        assert {name for name, _ in lines} <= known
        db.exec_driver_sql("COMMIT")
        raw = db.connection.driver_connection
        raw.autocommit = True
        for name, value in lines:
            raw.execute(f"ALTER SYSTEM SET {name} = '{value}'")  # refused where the value is none
            raw.execute(f"ALTER SYSTEM RESET {name}")
        raw.autocommit = False
        assert db.exec_driver_sql("SELECT pg_read_file('postgresql.auto.conf')").scalar_one() == kept
    storage.dispose()


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed: apt-get install systemd")
def test_systemd_reads_the_unit(tmp_path):
    program = Path(sys.executable)
    unit = tmp_path / "kveil.service"
    unit.write_text(block("ini", "[Unit]").replace("/opt/kveil/bin/kveil", str(program)))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True)
    complaints = [line for line in done.stderr.splitlines() if "kveil.service" in line]
    assert complaints == []
    unit.write_text(unit.read_text().replace("LimitCORE=0", "LimitCORE=nothing"))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True)
    assert "kveil.service" in done.stderr, "and a mistake would be seen"


@pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed: apt-get install nginx")
def test_nginx_reads_the_proxy(tmp_path):
    tls(tmp_path)
    site = block("nginx", "limit_req_zone").replace("/etc/kveil/tls", str(tmp_path))
    (tmp_path / "logs").mkdir()
    temporary = "".join(f"{one}_temp_path {tmp_path};" for one in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    (tmp_path / "nginx.conf").write_text(f"pid {tmp_path}/pid; events {{}} http {{ {temporary} {site} }}")
    command = ["nginx", "-t", "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf")]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ})
    assert done.returncode == 0, done.stderr


def tls(folder):
    """A certificate of nobody."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "x")])
    now = datetime.now(UTC)
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(1)
    signed = made.not_valid_before(now).not_valid_after(now + timedelta(days=1)).sign(key, hashes.SHA256())
    (folder / "certificate.pem").write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (folder / "key.pem").write_bytes(key.private_bytes(serialization.Encoding.PEM, *plain))
