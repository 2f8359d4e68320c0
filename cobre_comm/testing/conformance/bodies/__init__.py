"""What a rank does, one file per kind of collective; each function takes the communicator first."""
