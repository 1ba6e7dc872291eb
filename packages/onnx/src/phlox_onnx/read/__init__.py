"""Bytes of a file as plain data, its functions inlined, its old forms of ops made new."""
