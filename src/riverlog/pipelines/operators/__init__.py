"""Windows and joins over DataFrames, with late rows counted and put apart in front of Spark's operators."""
