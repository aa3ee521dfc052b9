import type { RestartRecord } from '../../transcript/records.ts';

/** The result of the operator's command. */
export type RestartOutcome = Pick<RestartRecord, 'exitCode' | 'message' | 'output'>;

/** Restarts the target. Rejects only with the signal's reason. */
export type RestartTarget = (signal: AbortSignal) => Promise<RestartOutcome>;
