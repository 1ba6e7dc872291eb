"""How a causal model goes on: which token follows, and the steps that make them."""
