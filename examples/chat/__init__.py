"""A tiny language model that is taught some capitals, and then talks about them."""
