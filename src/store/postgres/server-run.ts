/**
 * SQL for a text that changes whenever the server may assign transaction ids again. A restart changes the server's
 * start time. After a crash of one of its processes, the server recovers without a restart and resets its statistics.
 * If an operator resets them, the text also changes, which is harmless.
 */
export const SERVER_RUN =
  "concat(extract(epoch FROM pg_postmaster_start_time()), ' ', extract(epoch FROM (SELECT stats_reset FROM pg_stat_bgwriter)))";
