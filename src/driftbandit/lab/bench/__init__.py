"""Measuring speed: what `driftbandit bench` runs. One module a question; `report` puts the answers on paper."""
