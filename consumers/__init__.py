"""The Kafka edge: watermarks, bounded slice reader, landing, group offsets."""
