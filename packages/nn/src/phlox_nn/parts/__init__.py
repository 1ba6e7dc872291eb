"""What a module is made of: its fields, what may stand in them, how they are walked."""
