import { duration, LONG_MS } from '../text/wording.ts';
import type { Verdict } from '../verdict/judge.ts';
import type { Report, ReportCheck, ReportFinding, ReportLogin } from './report.ts';

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
  { verdict: 'not_asked', word: 'not asked', heading: 'Not asked' },
  { verdict: 'not_applicable', word: 'not applicable', heading: 'Not applicable' },
  { verdict: 'pass', word: 'passed', heading: 'Passed' },
  { verdict: 'not_selected', word: 'not selected', heading: 'Not selected' },
  { verdict: 'excluded', word: 'excluded', heading: 'Excluded' },
];

export function verdictWord(verdict: Verdict): string {
  return VERDICT_WORDS.find((row) => row.verdict === verdict)?.word ?? verdict;
}

/** The checks of the findings with a verdict, in the order in which to mend them, each with the first of its finding. */
export function foundChecks(
  { findings, checks }: Pick<Report, 'findings' | 'checks'>,
  verdict: Verdict,
): { check: ReportCheck; leader: string; finding: ReportFinding }[] {
  return findings.flatMap((finding) =>
    finding.checks.flatMap((id) => {
      const check = checks.find((one) => one.id === id && one.verdict === verdict);
      return check === undefined ? [] : [{ check, leader: finding.checks[0] ?? id, finding }];
    }),
  );
}

/** The outcome of an SSH login, in words. */
export function loginInWords({ username, host, port, key, rung, message, took_ms }: ReportLogin): string {
  const came =
    rung === 'done'
      ? 'logged in'
      : `did not get past “${rung}”${message === undefined ? '' : `: ${message}`}`;
  return `${username}@${host}:${port} with the ${key} key ${came}, after ${duration(took_ms)}`;
}

/** What the signature of a report proves, as one sentence without its full stop. */
export function whatItProves({ nonce, judged_by }: Pick<Report, 'nonce' | 'judged_by'>): string {
  const edited = judged_by === undefined ? '' : ', of a transcript that could be edited';
  const asked = nonce === undefined ? '' : ', for the nonce that it names';
  return `the holder of the key says so${edited}${asked}; only a run of your own cannot be invented`;
}
