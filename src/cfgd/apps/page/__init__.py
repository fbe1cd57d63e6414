"""The layout of reports: one self-contained HTML file with light and dark themes, and figures."""
