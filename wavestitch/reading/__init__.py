"""For whoever works with the data: published waveforms as NumPy arrays, tables and series. Never changes anything."""
