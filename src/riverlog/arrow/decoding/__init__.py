"""Record batches to Arrow columns: by a compiled kernel, or record by record."""
