"""What maintenance sees of tables, and how snapshots go."""
