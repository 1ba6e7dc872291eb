"""What an op is: its signature, its declaration, its formula."""
