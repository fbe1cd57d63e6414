"""Does the fractional direction help in training? The problems, the rivals, and what comes out."""
