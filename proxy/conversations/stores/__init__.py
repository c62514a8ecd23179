"""Responses that are kept, so that conversations can go on over providers that keep none."""
