"""Commands that show what the proxy does with one payload: translate, validate, explain and call."""
