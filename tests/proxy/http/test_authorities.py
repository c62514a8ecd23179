"""Certificate authorities of the system: they are read when a provider needs them, and what needs them has them."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
import trustme

from dragoman.contract.fakes import FakeProvider
from dragoman.proxy.config.models import Tls
from dragoman.proxy.http.authorities import defer_authorities
from dragoman.proxy.http.tls import create_tls_context
from tests.resilience.serving_process import configure, serve


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """The context of a server whose certificate the system's authorities have issued."""
    made = trustme.CA()
    made.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    made.issue_cert("127.0.0.1").configure_cert(context)
    return context


@pytest.mark.parametrize(
    ("addresses", "count"),
    [
        (("http://127.0.0.1/v1",), 0),
        (("https://127.0.0.1/v1",), 1),
        (("HTTPS://127.0.0.1/v1",), 1),
        (("http://127.0.0.1/v1", "https://proxy.test"), 1),
    ],
)
@pytest.mark.usefixtures("authority")
def test_authorities_are_read_for_https_addresses_alone(addresses: tuple[str, ...], count: int) -> None:
    with defer_authorities():
        context = ssl.create_default_context()
    assert context.get_ca_certs() == []
    assert create_tls_context(Tls(), *addresses) is True
    assert len(context.get_ca_certs()) == count
    assert len(ssl.create_default_context().get_ca_certs()) == 1, "contexts that are made later trust as ever"


@pytest.mark.parametrize("trusted", [True, False])
async def test_a_provider_with_https_is_judged_by_the_systems_authorities(
    authority: ssl.SSLContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trusted: bool
) -> None:
    if not trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
    async with FakeProvider("openai", tls=authority) as fake:
        config = configure(fake.port)
        config["providers"]["p"]["base_url"] = f"https://127.0.0.1:{fake.port}/v1"
        async with serve(tmp_path, config) as proxy:
            status, body = await proxy.ask()
    assert (status, b"upstream_tls_failed" in body) == ((200, False) if trusted else (502, True))
