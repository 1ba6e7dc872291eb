"""Lines as classes and functions with names: the text of the package."""
