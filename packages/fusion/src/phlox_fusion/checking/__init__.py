"""Whether a replay gives what the function gives, and which op is at fault."""
