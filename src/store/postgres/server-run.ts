/**
 * SQL: another text once the server may give out ids of transactions again that it gave out before. A restart has another
 * start time. Where one of its processes crashed, the server recovers without one, and its statistics begin anew; so they do
 * when an operator resets them, which does no harm.
 */
export const SERVER_RUN =
  "concat(extract(epoch FROM pg_postmaster_start_time()), ' ', extract(epoch FROM (SELECT stats_reset FROM pg_stat_bgwriter)))";
