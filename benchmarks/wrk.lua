-- Says what was measured as one line of JSON; times are in microseconds.
function done(summary, latency)
  local wrong = summary.errors
  io.write(string.format(
    '{"requests": %d, "duration": %d, "wrong": %d, "p50": %d, "p99": %d}\n',
    summary.requests, summary.duration,
    wrong.connect + wrong.read + wrong.write + wrong.status + wrong.timeout,
    latency:percentile(50), latency:percentile(99)))
end
