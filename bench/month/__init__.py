"""A month of orders and their ERP in virtual time, with everything that goes wrong in one."""

import sys
from pathlib import Path

# What all benchmarks share is found as the scripts beside this package find them.
sys.path.append(str(Path(__file__).parents[1]))
