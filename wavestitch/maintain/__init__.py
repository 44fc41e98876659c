"""Maintenance: what may go from landing and tables, decided apart from the edges that let it go."""
