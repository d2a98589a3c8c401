"""trueup keeps two systems in agreement."""

__version__ = "0.1.0"
