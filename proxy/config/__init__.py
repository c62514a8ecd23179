"""The configuration file: its reader, its data model, and the checks that explain what is wrong with it."""
