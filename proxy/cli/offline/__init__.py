"""Commands that show what the proxy does, without a proxy that serves: translate, validate, explain, and call."""
