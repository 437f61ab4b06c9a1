"""The demo: embedded servers, example manifests, and the real program over HTTP, step by step."""
