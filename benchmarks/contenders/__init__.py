"""What is measured side by side: each a process of its own that does one kind of work, again and again."""
