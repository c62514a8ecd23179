"""Whom to trust, and what to show, where TLS is spoken."""

from __future__ import annotations

import ssl

from dragoman.proxy.config.models import Tls

__all__ = ["tls_context"]


def tls_context(tls: Tls) -> ssl.SSLContext | bool:
    """True where the system's authorities will do. Raises OSError, ssl.SSLError included, for files that cannot be
    used."""
    if tls.ca is None and tls.cert is None:
        return True
    context = ssl.create_default_context(cafile=tls.ca)
    if tls.cert is not None:
        context.load_cert_chain(tls.cert, tls.key)
    return context
