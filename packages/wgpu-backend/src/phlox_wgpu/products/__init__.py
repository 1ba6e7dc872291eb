"""Products of matrices: plans by size and layout, and their launches."""
