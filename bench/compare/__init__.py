"""Two tables or files that should agree, compared by trueup and by its peers: who finds what, how fast, how dear."""

import sys
from pathlib import Path

# What all benchmarks share is found as the scripts beside this package find it.
sys.path.append(str(Path(__file__).parents[1]))
