"""A training by many processes, with all that scripts for several machines do."""
