"""`dragoman import`: conversion of other proxies' configurations."""
