"""Real servers for the tests: etcd, kube-apiserver, kube-controller-manager and a Spring Eureka
server.

Built once from the package registries into a cache folder, started on loopback, always ended. No
Docker; a machine with nothing but Python will do. `python -m tests.servers --help` shows what can
be done by hand.
"""
