"""How a run is shown while it goes on and after."""
