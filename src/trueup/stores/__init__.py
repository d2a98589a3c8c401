"""Where trueup keeps its own state: ledgers and archives. Adapters of `trueup.ports`."""
