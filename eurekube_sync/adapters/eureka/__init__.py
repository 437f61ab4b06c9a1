"""Eureka over HTTP: the one package that imports `requests`. It hands over our own values and raises our own errors.

`client` makes the calls, `answers` says what an answer means, `wire` reads and writes JSON, shaped as in `documents`;
`peers` calls one of several servers, `rests` says which is left alone; `batches` writes to all of them in the form of
`replication`, but for what is in `doubts`; `address` holds where and how to connect, `login` as whom.
"""

from eurekube_sync.adapters.eureka.address import ConnectionOptions, EurekaAddress
from eurekube_sync.adapters.eureka.client import EurekaClient
from eurekube_sync.adapters.eureka.login import Login, SecretFile, make_login

__all__ = ["ConnectionOptions", "EurekaAddress", "EurekaClient", "Login", "SecretFile", "make_login"]
