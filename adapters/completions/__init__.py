"""Completions, for all dialects: validation of requests, readers of replies and streams.

Completions is the protocol before chat, with a prompt instead of messages and a text instead of a message. Its streams
are read by the code in adapters/common/, and written by chat's writer.
"""
