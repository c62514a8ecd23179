"""Output text: from tokens to text, and from text to reasoning and tool calls."""

__all__: list[str] = []
