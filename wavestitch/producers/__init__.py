"""The other end: cuts recordings into chunks and sends them so that a waveform stays in one run of offsets."""
