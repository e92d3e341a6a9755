"""Values that are JSON as typed columns, read as Spark reads them."""
