from pathlib import Path

import pytest

from riverlog.pipelines.operators.watermarks import NoWatermark, late_watermark_ms


def planned(folder: Path, batch: int, text: str) -> str:
    (folder / "offsets").mkdir(exist_ok=True)
    (folder / "offsets" / str(batch)).write_text(text)
    return str(folder)


def test_rows_are_judged_by_the_watermark_of_the_batch_before(tmp_path: Path) -> None:
    checkpoint = planned(tmp_path, 6, 'v1\n{"batchWatermarkMs":1767225600123,"batchTimestampMs":5}\n{"orders":{"0":7}}')
    assert late_watermark_ms(checkpoint, 7) == 1_767_225_600_123
    assert late_watermark_ms(f"file://{checkpoint}", 7) == 1_767_225_600_123


def test_nothing_is_late_in_the_first_batch(tmp_path: Path) -> None:
    assert late_watermark_ms(str(tmp_path), 0) == 0


def test_a_checkpoint_that_says_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NoWatermark, match=r"offsets/0 of the checkpoint .* names no watermark"):
        late_watermark_ms(planned(tmp_path, 0, "v1\n{}\n"), 1)
    with pytest.raises(NoWatermark, match=r"cannot be read for its watermark .*keep it on a node"):
        late_watermark_ms("dbfs://somewhere/checkpoint", 1)
