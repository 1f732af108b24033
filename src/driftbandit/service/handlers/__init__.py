"""What the service does when it is asked, one module per kind of question. Importing them fills the table."""

from driftbandit.service.handlers import deciding, explaining, looking, managing, streaming, watching

__all__ = ["deciding", "explaining", "looking", "managing", "streaming", "watching"]
