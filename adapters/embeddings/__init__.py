"""What the dialects of embeddings share."""
