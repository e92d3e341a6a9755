"""Looking into the files of any partition folder without opening it as a log."""
