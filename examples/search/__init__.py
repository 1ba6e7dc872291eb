"""Semantic search with MiniLM: real weights in layers of phlox."""
