"""Agents for Dirty Nasty Filthy Hearts, and what measures them. ``dnfh_env`` needs nothing from here."""
