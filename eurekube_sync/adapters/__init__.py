"""The two servers as they really are: HTTP, JSON, retries and time limits."""
