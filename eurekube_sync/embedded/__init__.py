"""Small stand-ins for a Kubernetes API and a Eureka server, for `demo`, fast tests and the
simulation.

They know nothing of the reconciler. A client calls them over HTTP, or passes them a `Request`.
`tests/contract` compares them with the real servers.
"""
