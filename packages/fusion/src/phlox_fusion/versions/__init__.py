"""Which recording serves a call: what was recorded for each form of arguments."""
