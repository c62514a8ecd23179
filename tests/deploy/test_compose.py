"""compose.yaml: its services are locked in, its commands exist, and dragoman accepts its configuration."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from typer.testing import CliRunner

from dragoman.proxy.cli.main import app
from dragoman.proxy.config.load import check

FOLDER = Path(__file__).resolve().parents[2] / "deploy"
COMPOSE: dict[str, Any] = YAML(typ="safe").load(FOLDER / "compose.yaml")
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = [name for name, service in SERVICES.items() if service["image"] == "dragoman"]
ENV = {"DRAGOMAN_KEY": "a-key-of-clients", "DRAGOMAN_ADMIN_KEY": "a-key-for-metrics", "OPENAI_API_KEY": "sk-x"}


def load_config() -> dict[str, Any]:
    config: dict[str, Any] = YAML(typ="safe").load(FOLDER / "dragoman.yaml")
    return config


def test_dragoman_accepts_the_configuration() -> None:
    checked = check(FOLDER / "dragoman.yaml", ENV)
    assert checked.warnings == ()
    assert checked.config.keys, "without keys it would not listen on an address that others reach"


def test_dragoman_accepts_the_lines_that_are_commented_out(tmp_path: Path) -> None:
    lines = (FOLDER / "dragoman.yaml").read_text("utf-8").splitlines()
    file = tmp_path / "dragoman.yaml"
    file.write_text("\n".join(re.sub(r"^  # ", "  ", line) for line in lines))
    assert [*check(file, ENV).config.providers] == ["fake", "openai"]


def test_variables_of_the_configuration_reach_the_container() -> None:
    used = {*re.findall(r"\$\{(\w+)\}", (FOLDER / "dragoman.yaml").read_text("utf-8"))}
    assert used == {*SERVICES["dragoman"]["environment"]}


def test_keys_are_required() -> None:
    given = SERVICES["dragoman"]["environment"]
    assert all(":?" in given[name] for name in ("DRAGOMAN_KEY", "DRAGOMAN_ADMIN_KEY"))


def test_only_loopback_addresses_are_published() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", ())]
    assert ports and all(port.startswith("127.0.0.1:") for port in ports)


@pytest.mark.parametrize("name", OURS)
def test_services_have_no_more_rights_than_they_need(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]


def test_files_that_are_mounted_exist() -> None:
    mounts = [mount.split(":")[0] for service in SERVICES.values() for mount in service.get("volumes", ())]
    files = [mount for mount in mounts if mount.startswith("./")]
    assert files and not [name for name in files if not (FOLDER / name).is_file()]
    assert {*mounts} - {*files} == {*COMPOSE["volumes"]}


def test_the_fake_listens_where_the_configuration_calls_it() -> None:
    fake = SERVICES["fake"]
    assert fake["network_mode"] == "service:dragoman", "fakes listen on loopback only"
    [*words, port] = fake["command"]
    assert f"127.0.0.1:{port}/" in load_config()["providers"]["fake"]["base_url"]
    assert CliRunner().invoke(app, [*words, port, "--help"]).exit_code == 0


def test_prometheus_asks_the_admin_listener() -> None:
    config = YAML(typ="safe").load(FOLDER / "prometheus.yml")
    assert any(
        mount.endswith(f"/etc/prometheus/{config['rule_files'][0]}:ro") for mount in SERVICES["prometheus"]["volumes"]
    )
    scrape = config["scrape_configs"][0]
    server = load_config()["server"]
    assert scrape["static_configs"] == [{"targets": [f"dragoman:{server['admin_port']}"]}]
    assert scrape["authorization"]["credentials_file"] == "/run/secrets/admin_key"
    assert COMPOSE["secrets"]["admin_key"] == {"environment": "DRAGOMAN_ADMIN_KEY"}
    assert SERVICES["prometheus"]["secrets"] == ["admin_key"]


def test_stopping_waits_for_running_requests() -> None:
    drain = check(FOLDER / "dragoman.yaml", ENV).config.server.drain
    [minutes] = re.findall(r"^(\d+)m$", SERVICES["dragoman"]["stop_grace_period"])
    assert int(minutes) * 60 > drain.timeout + drain.delay
