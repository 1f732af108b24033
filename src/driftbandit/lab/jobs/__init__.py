"""Many simulations as one job: cut into chunks, spread over workers, kept on disk, resumed."""
