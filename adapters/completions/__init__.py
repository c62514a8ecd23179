"""What the dialects' completions verbs share: validation of requests, reading of replies and streams.

Completions are chat's elder: a prompt instead of messages, a text instead of a message. Streams are read and written by
chat's machinery.
"""
