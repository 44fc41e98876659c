"""Importing this loads the gate, which takes a batch of a new process longer than all the rest."""

from wavestitch.validation.gate import load_gate

load_gate()
