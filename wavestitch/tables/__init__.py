"""The Iceberg edge: head, published, held, batches."""
