"""How a call of an op reaches its device."""
