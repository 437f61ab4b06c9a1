"""Clients of the real servers: HTTP, JSON, retries and time limits."""
