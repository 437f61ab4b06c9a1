"""The embedded Kubernetes API: `server.EmbeddedKubernetes(now).handle(request)`."""
