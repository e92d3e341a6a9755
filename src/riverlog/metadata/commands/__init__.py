"""What can be asked of the metadata machine: one file per noun, each with its commands, replies and decisions.

A decision reads a `MetadataImage` and gives records and a reply; it changes nothing. Where a command names several
things, each is judged against the image as it would be after those before it.
"""
