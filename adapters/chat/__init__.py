"""Chat, for all dialects: rewrites of requests, readers of replies and streams, writers of streams."""
