"""One module or package per backend; imported only when one is used."""
