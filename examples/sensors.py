"""Sensors whose readings come late, and the three things to do about it: the same windows, three policies.

    riverlog topics create readings --partitions 3
    riverlog topics create minutes-drop
    riverlog topics create minutes-side
    riverlog topics create readings-late
    riverlog topics create minutes-recomputed --config cleanup.policy=compact
    riverlog pipelines run examples/sensors.py

A reading is {"sensor": "roof", "degrees": 21.5, "at": "…"}. Results are the mean of each sensor and minute.
"""

from riverlog.pipelines import Pipeline, Stream, tumbling


def means(name: str, *, late: str) -> tuple[Pipeline, Stream]:
    """Define the means of each minute, with one policy for late readings."""
    pipeline = Pipeline(name)
    readings = pipeline.stream(
        "readings", schema="sensor string, degrees double, at timestamp", time="at", watermark="10 seconds"
    )
    windows = readings.window(tumbling("1 minute"), by=["sensor"], late=late)
    return pipeline, windows.aggregate(degrees="round(avg(degrees), 3)", readings="count(*)")


# A late reading is left out, and counted: `riverlog pipelines describe minutes-drop` shows how many.
drop, minutes = means("minutes-drop", late="drop")
minutes.to("minutes-drop")

# It is written to another topic, with the window that it missed, for somebody who corrects by hand.
side, minutes = means("minutes-side", late="side-output:readings-late")
minutes.to("minutes-side")

# It corrects the mean for an hour longer: the new mean has the key of the old one, and takes its place.
recomputed, minutes = means("minutes-recomputed", late="recompute:1 hour")
minutes.to("minutes-recomputed")

if __name__ == "__main__":
    for pipeline in (drop, side, recomputed):
        pipeline.start()
    recomputed.wait()
