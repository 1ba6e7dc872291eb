"""What a device is: a table of functions; the devices of this package."""
