"""Optional features: each registers with the frontier's hooks and the node's services; no room below imports one."""
