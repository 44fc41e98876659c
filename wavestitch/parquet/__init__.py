"""Files of published waveforms as Parquet: what pyarrow writes of them, and the pages of samples, which it does not."""
