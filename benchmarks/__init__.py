"""Figures that anyone can print: absolute ones drift with the machine, ratios of one run hold."""
