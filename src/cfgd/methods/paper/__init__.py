"""The paper's methods: one direction, with rules for terminal, order and step."""
