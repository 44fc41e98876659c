"""The Kafka edge that readers and producers share: settings, what errors mean, and the broker's own record batches."""
