SELECT c.kind, count(*) AS calls, count(r.seq) AS answered, sum(r.is_error) AS failed, max(r.text) AS last
FROM tool_calls c LEFT JOIN tool_results r ON r.trace = c.trace AND r.id = c.id
GROUP BY c.kind ORDER BY c.kind
