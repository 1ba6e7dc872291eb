"""A small GPT that writes letters in the manner of Shakespeare."""
