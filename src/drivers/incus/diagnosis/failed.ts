import { broken, type Diagnosis } from '../../../ports/diagnosis.ts';

/** The finding for a check that could not run. */
export function failed(subject: string, error: unknown, remedy: string): Diagnosis {
  const message = error instanceof Error ? error.message : String(error);
  return broken(subject, message.endsWith('.') ? message : `${message}.`, remedy);
}
