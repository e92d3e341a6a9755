"""What people type and what they see: options, expressions, formats, tables and exit codes."""
