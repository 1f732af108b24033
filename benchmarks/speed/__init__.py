"""Measuring speed: what `make bench` runs. One module per question; `report` puts the answers on paper."""
