SELECT sum(output_tokens) AS output, sum(cached_tokens) AS cached, (SELECT count(*) FROM events) AS events,
       (SELECT sum(count) FROM counters WHERE what = 'problem' AND name = 'unknown_kind') AS unknown
FROM usage u WHERE seq = (SELECT max(seq) FROM usage v WHERE v.trace = u.trace AND v.session = u.session AND v.id = u.id)
