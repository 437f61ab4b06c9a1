"""Eureka over HTTP: the one package that imports `requests`. It hands over our own values and raises our own errors.

`client` calls one server, `peers` one of several, `batches` all of them at once.
"""
