"""Measurements that the one command includes by name; each has `measure(ground, options, say)`."""
