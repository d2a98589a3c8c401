"""What trueup answers over HTTP."""
