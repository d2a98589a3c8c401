"""Shipped contract suites: what an adapter of your own must hold to."""
