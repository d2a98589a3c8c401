"""`trueup demo`: two real systems that disagree are compared, explained, repaired and proven equal."""
