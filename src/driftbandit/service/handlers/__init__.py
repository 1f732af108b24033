"""The handlers of the API, by subject. Importing them fills the table of operations."""

from driftbandit.service.handlers import deciding, looking, managing, status, streaming

__all__ = ["deciding", "looking", "managing", "status", "streaming"]
