/** One thing that `berth doctor` looked at. */
export interface Diagnosis {
  /** What was looked at, such as `image ubuntu-24.04 on host kvm-1`. */
  subject: string;
  verdict: 'ok' | 'warning' | 'broken';
  /** What was found, in a sentence. */
  finding: string;
  /** What to do; absent where all is well. */
  remedy?: string;
}

/** All is well. */
export const ok = (subject: string, finding: string): Diagnosis => ({ subject, verdict: 'ok', finding });
/** It works, and something about it should be changed. */
export const warning = (subject: string, finding: string, remedy: string): Diagnosis => ({
  subject,
  verdict: 'warning',
  finding,
  remedy,
});
/** It does not work until the remedy is done. */
export const broken = (subject: string, finding: string, remedy: string): Diagnosis => ({
  subject,
  verdict: 'broken',
  finding,
  remedy,
});
