"""Stores of responses, so that clients can continue a conversation even if the provider stores none."""
