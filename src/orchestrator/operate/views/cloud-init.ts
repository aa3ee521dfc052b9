/**
 * The state of cloud-init according to the machine's console. `done`: it finished. `error`: a part of it failed.
 * `running`: it started, and the console does not show its end.
 */
export const cloudInitStates = ['done', 'error', 'running'] as const;

export interface CloudInitStatus {
  status: (typeof cloudInitStates)[number];
  /** The console line that shows the state. */
  line: string;
}

/** A line of cloud-init itself, or of systemd about its units. */
const OF_CLOUD_INIT = /cloud-init|cloud-config|cloud-final|\bcc_[a-z_]+\.py|\bci-info\b/i;
const FINISHED = /Cloud-init v\. \S+ finished at /i;
const FAILED = /\[FAILED\]|\[(?:WARNING|ERROR|CRITICAL)\]|Traceback|failed (?:to|running)|: error\b/i;

/**
 * Reads the state of cloud-init from a console. Undefined if the console shows nothing of it. The first failure is
 * reported, since others follow from it.
 */
export function readCloudInit(console: string): CloudInitStatus | undefined {
  const lines = console.split('\n').filter((line) => OF_CLOUD_INIT.test(line));
  const failed = lines.find((line) => FAILED.test(line));
  if (failed !== undefined) return { status: 'error', line: failed };
  const finished = lines.findLast((line) => FINISHED.test(line));
  if (finished !== undefined) return { status: 'done', line: finished };
  const last = lines.at(-1);
  return last === undefined ? undefined : { status: 'running', line: last };
}
