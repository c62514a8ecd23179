"""The aiohttp server: configuration, routing, upstreams, command line."""
