"""Embeddings, for all dialects."""
