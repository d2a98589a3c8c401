"""Two sides in, differences out. `plan` says what is compared, `compare` does it."""
