"""Record batches: headers read and checked in place, records and compression for those who must look inside. Pure."""
