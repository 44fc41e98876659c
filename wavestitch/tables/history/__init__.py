"""Heads in the ancestry of the waveforms table, and the history for people."""
