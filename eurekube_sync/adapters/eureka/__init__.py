"""Eureka over HTTP: the one package that imports `requests`. It hands over our own values and raises our own errors.

`client` calls one server, `peers` one of several, `batches` all of them at once.
"""

from eurekube_sync.adapters.eureka.address import ConnectionOptions, EurekaAddress, Login, SecretFile, make_login
from eurekube_sync.adapters.eureka.client import EurekaClient

__all__ = ["ConnectionOptions", "EurekaAddress", "EurekaClient", "Login", "SecretFile", "make_login"]
