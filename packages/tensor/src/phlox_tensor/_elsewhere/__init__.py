"""What other libraries call things, and the hints made of it."""
