"""One exchange: admission, attempts, and the pump between the provider, the pipeline and the client."""

__all__: list[str] = []
