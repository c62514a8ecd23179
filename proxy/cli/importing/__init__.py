"""Configurations of other proxies, turned into ours."""
