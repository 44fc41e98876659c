"""The Great Expectations edge: the gate between reassembly and publish."""
