"""cfgd where users already are: each folder or file is imported only when it is used."""
