"""A page that trains the digit classifier in a browser, on the visitor's GPU."""
