"""A language model in one file, of 8 bits, that is taught to answer in JSON by adapters."""
