import { broken, type Diagnosis } from '../../../ports/diagnosis.ts';

/** The finding about something that could not be examined. */
export function failed(subject: string, error: unknown, remedy: string): Diagnosis {
  const message = error instanceof Error ? error.message : String(error);
  return broken(subject, message.endsWith('.') ? message : `${message}.`, remedy);
}
