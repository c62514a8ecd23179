"""The configuration file: reading, checking, explaining what is wrong with it."""
