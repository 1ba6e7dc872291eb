"""Functions of elements as ops of their own, each of which is one kernel."""
