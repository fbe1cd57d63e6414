"""Programs on top of the library: nothing in the library imports them."""
