"""How the catalog and its files are reached: errors in our words, durable files, what Spark is told."""
