"""Values: what trueup talks about. Nothing here does I/O or asks the time."""
