"""Files as Spark sees them: WebHDFS over a tree that the records of the topic add up to."""
