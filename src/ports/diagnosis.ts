/** The result of one check of `berth doctor`. */
export interface Diagnosis {
  /** The thing checked, such as `image ubuntu-24.04 on host kvm-1`. */
  subject: string;
  verdict: 'ok' | 'warning' | 'broken';
  /** The result, in a sentence. */
  finding: string;
  /** What the operator should do; absent if the check passed. */
  remedy?: string;
}

/** The check passed. */
export const ok = (subject: string, finding: string): Diagnosis => ({ subject, verdict: 'ok', finding });
/** It works, but the remedy is recommended. */
export const warning = (subject: string, finding: string, remedy: string): Diagnosis => ({
  subject,
  verdict: 'warning',
  finding,
  remedy,
});
/** It does not work until the remedy is applied. */
export const broken = (subject: string, finding: string, remedy: string): Diagnosis => ({
  subject,
  verdict: 'broken',
  finding,
  remedy,
});
