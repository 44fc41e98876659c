"""What larger rates take: measured figures, a simulation that has to reproduce them, and what it says beyond them."""
