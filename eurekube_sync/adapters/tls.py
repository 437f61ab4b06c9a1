"""How the certificates of both servers, and of a proxy, are verified: as kubectl, curl and Java
clients do."""

from __future__ import annotations

import ssl
from typing import Any


def verify_as_kubectl(manager: Any) -> None:
    """Make the TLS connections of a urllib3 pool manager verify chain, name and time, and not the
    form of certificates. A chain ends at any certificate of the CA file, root or not.

    Python 3.13 changed both defaults (https://docs.python.org/3/whatsnew/3.13.html#ssl).
    `VERIFY_X509_STRICT` refuses a certificate without an authority key identifier, as those of
    EKS, or an authority without key usage. Before, without `VERIFY_X509_PARTIAL_CHAIN`, a CA file
    that lacks the root was refused.
    """
    pool = manager.pool_classes_by_scheme["https"]
    connection = pool.ConnectionCls

    def connect(self: Any) -> None:
        given, proxy = self.ssl_context, self.proxy_config
        self.ssl_context = given or _context(self, with_authorities=not _names_authorities(self))
        _set_flags(self.ssl_context)
        if proxy is not None and proxy.ssl_context is None:
            # For a proxy with a context of its own, urllib3 loads no authorities.
            context = _context(self, with_authorities=True)
            _set_flags(context)
            self.proxy_config = proxy._replace(ssl_context=context)
        try:
            connection.connect(self)
        finally:  # the next connect reads the files again
            self.ssl_context = given
            self.proxy_config = proxy

    own = type(connection.__name__, (connection,), {"connect": connect})
    own_pool = type(pool.__name__, (pool,), {"ConnectionCls": own})
    manager.pool_classes_by_scheme = {**manager.pool_classes_by_scheme, "https": own_pool}


def _set_flags(context: ssl.SSLContext) -> None:
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN


def _names_authorities(connection: Any) -> bool:
    return bool(connection.ca_certs or connection.ca_cert_dir or connection.ca_cert_data)


def _context(connection: Any, *, with_authorities: bool) -> ssl.SSLContext:
    """Return urllib3's own context for a connection, with its authorities or those of the system if
    asked."""
    from urllib3.util import ssl_

    context = ssl_.create_urllib3_context(
        cert_reqs=ssl_.resolve_cert_reqs(connection.cert_reqs),
        ssl_minimum_version=connection.ssl_minimum_version,
        ssl_maximum_version=connection.ssl_maximum_version,
    )
    if with_authorities and _names_authorities(connection):
        context.load_verify_locations(
            connection.ca_certs, connection.ca_cert_dir, connection.ca_cert_data
        )
    elif with_authorities:
        context.load_default_certs()
    return context
