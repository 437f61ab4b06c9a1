"""The demo: embedded servers, example manifests, and the real program over HTTP, told step by step."""
