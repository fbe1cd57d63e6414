"""The report of `cfgd reproduce`: claims, figures, and the page that shows both."""
