/**
 * SQL: a text that changes whenever the server may give out ids of transactions a second time. A restart changes its start
 * time. If one of its processes crashes, the server recovers without a restart, and its statistics begin anew. They also do
 * when an operator resets them, which does no harm.
 */
export const SERVER_RUN =
  "concat(extract(epoch FROM pg_postmaster_start_time()), ' ', extract(epoch FROM (SELECT stats_reset FROM pg_stat_bgwriter)))";
