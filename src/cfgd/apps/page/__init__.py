"""How a report looks: one self-contained HTML file, light and dark, and its figures."""
