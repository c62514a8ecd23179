"""`dragoman learn` and `dragoman drift`: what a provider is, found out by asking it."""
