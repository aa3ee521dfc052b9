import type { Report } from './report.ts';

/** What the signature of a report proves, as one sentence without its full stop. */
export function whatItProves({ nonce, judged_by }: Pick<Report, 'nonce' | 'judged_by'>): string {
  const edited = judged_by === undefined ? '' : ', of a transcript that could be edited';
  const asked = nonce === undefined ? '' : ', for the nonce that it names';
  return `the holder of the key says so${edited}${asked}; only a run of your own cannot be invented`;
}
