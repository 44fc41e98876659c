"""What is read: files of a snapshot, rows by filter, and which file has which id."""
