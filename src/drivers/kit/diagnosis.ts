import type { Diagnosis } from './driver-definition.ts';

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
