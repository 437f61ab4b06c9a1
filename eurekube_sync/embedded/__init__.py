"""Small stand-ins for the two servers: a Kubernetes API and a Eureka registry, for `demo`, fast tests and simulation.

They know nothing of the reconciler: a client talks to them over HTTP, or hands them a `Request` directly. What they
promise is what the contract suite in `tests/contract` has seen on the real servers.
"""
