-- What each question was followed by: the next evaluation's geomean, and the change.
SELECT q.id, q.category, before.geomean AS before, after.geomean AS after, after.geomean - before.geomean AS change
FROM questions q
JOIN evaluations before ON before.trace = q.trace AND before.seq = (SELECT max(seq) FROM evaluations e WHERE e.trace = q.trace AND e.seq < q.seq)
JOIN evaluations after ON after.trace = q.trace AND after.seq = (SELECT min(seq) FROM evaluations e WHERE e.trace = q.trace AND e.seq > q.seq)
