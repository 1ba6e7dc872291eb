"""How a record becomes parameters again, also one of another framework."""
