"""One module a command. They import what they need when they run, so that `trueup --help` stays fast."""
