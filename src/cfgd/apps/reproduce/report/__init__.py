"""Claims and their verdicts, figures, and the page that shows both."""
