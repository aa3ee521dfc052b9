/** A request to a driver and its answer, as sent over the wire. */
export interface Exchange {
  asked: string;
  answered: string;
}

/** The result of one check of `berth doctor` or `berth driver test`. */
export interface Diagnosis {
  /** The platform of berth.yaml that it concerns. Absent: this machine. */
  platform?: string;
  /** The thing checked, such as `image ubuntu-24.04 on host kvm-1`. */
  subject: string;
  verdict: 'ok' | 'skipped' | 'warning' | 'broken';
  /** The result, in a sentence. */
  finding: string;
  /** What the operator should do; absent if the check passed. */
  remedy?: string;
  /** What was required, and what follows if it is not met. */
  requirement?: string;
  consequence?: string;
  /** What was asked last, and the answers. */
  exchanges?: readonly Exchange[];
}

/** The check passed. */
export const ok = (subject: string, finding: string): Diagnosis => ({ subject, verdict: 'ok', finding });
/** The check was not made. */
export const skipped = (subject: string, finding: string): Diagnosis => ({
  subject,
  verdict: 'skipped',
  finding,
});
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

/** What to do about problems that both an alarm of a server and a check report. */
export const remedies = {
  clock: 'Run NTP (chrony or systemd-timesyncd) on both machines.',
  disk: 'Free space on it: when it is full, every create and every change is answered with 503.',
} as const;
