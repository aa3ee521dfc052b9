import type { Entry } from '../resources/ledger.ts';
import type { TranscriptRecord } from '../transcript/records.ts';

/** What a run tells while it goes on. */
export type RunEvent =
  | { event: 'begun'; runId: string; scenarios: number }
  | { event: 'scenario'; id: string; title: string; index: number; of: number }
  | { event: 'waiting'; text: string }
  | { event: 'resource'; entry: Entry }
  | { event: 'record'; record: TranscriptRecord }
  | { event: 'cleaning'; open: number }
  | { event: 'ended'; reason: string };
