"""From Python and NumPy to tensors, and from device to device."""
