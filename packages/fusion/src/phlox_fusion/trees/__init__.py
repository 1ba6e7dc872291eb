"""What trees of tensors and numbers have in common, and how they are taken apart and made."""
