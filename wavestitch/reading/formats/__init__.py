"""Waveforms as files of other formats, each by the format's own library. What a format can carry: `..exactness`."""
