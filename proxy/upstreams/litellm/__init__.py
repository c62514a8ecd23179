"""litellm as an upstream, for providers that no dialect here speaks to. Only `library` imports it."""
