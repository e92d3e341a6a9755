"""The roles of a replica: what each answers, waits for and does when its time is up."""
