"""The held table: its rows, their bytes, and how they are staged, looked at and removed."""
