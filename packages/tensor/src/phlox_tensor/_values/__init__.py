"""What calls are made of: element types, numbers, tensors, attributes."""
