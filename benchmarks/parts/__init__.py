"""Measurements that the one command includes by name; each has `measure(bed, options, say)`."""
