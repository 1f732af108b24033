"""The handlers of the API, by subject. Importing them fills the table of operations."""

from driftbandit.service.handlers import contexts, deciding, looking, managing, status

__all__ = ["contexts", "deciding", "looking", "managing", "status"]
