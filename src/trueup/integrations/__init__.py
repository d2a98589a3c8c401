"""Handlers that run elsewhere."""
