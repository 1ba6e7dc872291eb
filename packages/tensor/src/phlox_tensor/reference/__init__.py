"""The NumPy reference: what each op means, in plain NumPy. Clear before fast."""
