"""Generated pairs of tables, compared by trueup, and what it says held against the right answer.

One example is one pair of tables on two engines, compared by one strategy: every kind of value, nulls, duplicates, odd
keys and names, and differences of every kind that comparisons have missed. `bench/pairs.py` plays any number of them.

values: what is drawn. spelled: how it may be written. types, engines: what holds it. drawing: the two tables. turns:
which engines and strategy. oracle: the right answer. trial: the comparison. shrinking: a failure made small.
"""
