"""The school: a source whose events get lost, a rate-limited API, and four ways to keep them in agreement."""
