"""One exchange: it reads the request, tries targets until one answers, and writes the response."""

__all__: list[str] = []
