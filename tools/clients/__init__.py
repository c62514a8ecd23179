"""Client packages as they come, each in an environment of its own, over every route through dragoman and LiteLLM.

`python -m tools.clients --help` lists the commands. A client's script, in scripts/, is a small program of what its
users write; clients.yaml says what to install and how to point it at a gateway.
"""
