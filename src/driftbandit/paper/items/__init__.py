"""The paper's figures and tables, one module per family."""
