"""The system's words as types, and the pure decisions. Nothing here does I/O, reads a clock or imports an edge."""
