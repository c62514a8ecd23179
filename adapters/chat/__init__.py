"""What the dialects' chat verbs share: rewrites of requests, reading of replies and streams, writing of streams."""
