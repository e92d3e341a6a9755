"""Records that a query should have read and that are gone: one sentence for each way, and failing or going on."""

import logging

from riverlog.spark.source.options import SourceOptions

_log = logging.getLogger(__name__)


class DataLoss(Exception):
    """Records are gone that were not read; with failOnDataLoss=false the query goes on without them."""


def lost(options: SourceOptions, what: str) -> None:
    """Fail the query, or only say so, as failOnDataLoss wants it."""
    if options.fails_on_data_loss:
        raise DataLoss(f"{what}. Set failOnDataLoss=false to go on without them, or start with a new checkpoint")
    _log.warning("%s. The query goes on, as failOnDataLoss=false says", what)
