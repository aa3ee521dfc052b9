import type { ReportLogin } from './report.ts';
import { duration } from './words.ts';

/** How far an SSH login came, in words. */
export function loginInWords({ username, host, port, key, rung, message, took_ms }: ReportLogin): string {
  const came =
    rung === 'done'
      ? 'logged in'
      : `did not get past “${rung}”${message === undefined ? '' : `: ${message}`}`;
  return `${username}@${host}:${port} with the ${key} key ${came}, after ${duration(took_ms)}`;
}
