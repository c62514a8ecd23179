"""Real servers that nobody here wrote, each in an environment of its own: installed, started, recorded and compared.

`python -m tools.real_servers --help` lists the commands. A server serves dragoman-mini, so it answers, calls tools and
writes JSON as far as a model of a million parameters can.
"""
