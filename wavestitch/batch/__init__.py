"""The steps of a batch in order: plan, read, reassemble, validate, publish, commit_offsets; and rewind."""
