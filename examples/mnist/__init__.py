"""A digit classifier: trained on the CPU, saved, and served on three backends."""
