"""One whole step of training, in one order."""
