"""Learning: it asks an endpoint what it is, and writes down what is known with the exchanges that show it."""

__all__: list[str] = []
