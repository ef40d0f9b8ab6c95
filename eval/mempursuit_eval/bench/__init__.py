"""How long the pursuit takes, and what it adds to each framework's own search."""
