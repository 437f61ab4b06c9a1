"""The embedded servers with what only tests ask of them: rights, pages, refusals and Endpoints of
Kubernetes, and of Eureka old lists, evictions, overrides and a login. `tests/contract` holds them
to the real servers."""
