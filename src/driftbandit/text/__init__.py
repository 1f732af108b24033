"""Policies and worlds as text: what a name means, and how a user's own file is loaded; tables as text."""
