"""Functions of elements as one op of their own, which is one kernel."""
