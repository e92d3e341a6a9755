"""Clicks in, visits out: a visit is what a user does without a pause of half an hour.

    riverlog topics create clicks --partitions 3
    riverlog topics create visits
    riverlog pipelines run examples/visits.py

A click is JSON: {"user": "ada", "page": "/lamps", "at": "2026-03-02T09:00:00Z"}. A visit is written once, when nothing
can be added to it any more: half an hour after its last click, and five minutes for clicks that come late.
"""

from riverlog.pipelines import Pipeline, session

pipeline = Pipeline("visits")
clicks = pipeline.stream("clicks", schema="user string, page string, at timestamp", time="at", watermark="5 minutes")
visits = clicks.window(session("30 minutes"), by=["user"]).aggregate(
    clicks="count(*)",
    first_page="min_by(page, at)",
    last_page="max_by(page, at)",
    began="min(at)",
    seconds="cast(max(at) as long) - cast(min(at) as long)",
)
visits.select("user", "clicks", "first_page", "last_page", "began", "seconds").to("visits", key="user")

if __name__ == "__main__":
    pipeline.run()
