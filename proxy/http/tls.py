"""TLS: which authorities to trust, and which client certificate to present."""

from __future__ import annotations

import ssl

from dragoman.proxy.config.models import Tls

from .authorities import load_authorities

__all__ = ["create_tls_context"]


def create_tls_context(tls: Tls, *addresses: str) -> ssl.SSLContext | bool:
    """The context for a provider's `tls`; True if the system's authorities suffice, which are read if one of the
    addresses needs them. Raises OSError, ssl.SSLError included, for files that cannot be used."""
    if tls.ca is None and tls.cert is None:
        if not all(address.startswith("http:") for address in addresses):
            load_authorities()
        return True
    context = ssl.create_default_context(cafile=tls.ca)
    if tls.cert is not None:
        context.load_cert_chain(tls.cert, tls.key)
    return context
