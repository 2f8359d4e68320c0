"""The backend over MPI; importing it neither loads nor initialises an MPI."""
