"""What the site needs beyond Sphinx; one idea in each file."""
