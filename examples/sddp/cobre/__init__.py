"""Cobre's cases: folders of JSON and Parquet, as cobre-python 0.18 reads them."""
