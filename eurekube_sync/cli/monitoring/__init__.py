"""Metrics, health and a web page of a running process."""
