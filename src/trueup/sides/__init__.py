"""Adapters: other people's systems as sides."""
