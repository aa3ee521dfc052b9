import type { Verdict } from '../verdict/judge.ts';
import type { ReportLogin } from './report.ts';

/** Durations from here on are in minutes: 59.95 s rounds to 60.0 s, a minute. */
const LONG_MS = 59_950;

/** A duration in readable form: `340 ms`, `10 s`, `12.4 s`, `3 min 05 s`, `2 h 10 min`. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < LONG_MS) return `${Math.round(ms / 100) / 10} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${String(seconds % 60).padStart(2, '0')} s`;
  const minutes = Math.round(seconds / 60);
  return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, '0')} min`;
}

/** A time since the run's start: `+12.4 s`. */
export function atRunTime(ms: number): string {
  return `+${ms < LONG_MS ? `${(ms / 1000).toFixed(1)} s` : duration(ms)}`;
}

/** An RFC 3339 UTC time in readable form: `2026-03-01 10:00:12 UTC`. Other text is unchanged. */
export function wallTime(at: string): string {
  const [, day, time] = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?Z$/.exec(at) ?? [];
  return day === undefined ? at : `${day} ${time} UTC`;
}

export function plural(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}

/** The verdicts in words, worst first. */
export const VERDICT_WORDS: readonly { verdict: Verdict; word: string; heading: string }[] = [
  { verdict: 'fail', word: 'failed', heading: 'Failed' },
  { verdict: 'warn', word: 'warning', heading: 'Warnings' },
  { verdict: 'not_tested', word: 'not tested', heading: 'Not tested' },
  { verdict: 'not_applicable', word: 'not applicable', heading: 'Not applicable' },
  { verdict: 'pass', word: 'passed', heading: 'Passed' },
  { verdict: 'not_selected', word: 'not selected', heading: 'Not selected' },
  { verdict: 'excluded', word: 'excluded', heading: 'Excluded' },
];

export function verdictWord(verdict: Verdict): string {
  return VERDICT_WORDS.find((row) => row.verdict === verdict)?.word ?? verdict;
}

/** The outcome of an SSH login, in words. */
export function loginInWords({ username, host, port, key, rung, message, took_ms }: ReportLogin): string {
  const came =
    rung === 'done'
      ? 'logged in'
      : `did not get past “${rung}”${message === undefined ? '' : `: ${message}`}`;
  return `${username}@${host}:${port} with the ${key} key ${came}, after ${duration(took_ms)}`;
}
