"""The moving parts: ingest, worker, runs. They reach the world only through ports."""
