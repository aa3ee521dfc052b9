import type { Clock } from '../http/clock.ts';
import type { SignIn } from '../http/sign-in.ts';
import type { Transport } from '../http/transport.ts';
import type { Entry, LedgerFile } from '../resources/ledger.ts';
import type { SshClient } from '../ssh/ssh-client.ts';
import type { Level, RunSettings, TranscriptRecord } from '../transcript/records.ts';

/** What a run is about. */
export interface RunOptions extends SignIn {
  /** As the target's clients have it, `https://…/v1`, without a slash at its end. */
  baseUrl: string;
  /** A second key of the same account. */
  secondApiKey?: string | undefined;
  level: Level;
  /** Ids of checks; all of the level when absent. */
  only?: readonly string[] | undefined;
  settings: Omit<RunSettings, 'hasSecondKey'>;
  /** What has no price may be bought, for which the cap on the cost cannot hold. */
  acceptsUnknownCost?: boolean | undefined;
}

/** What a run is done with. */
export interface RunParts {
  runId: string;
  transport: Transport;
  ssh: SshClient;
  clock: Clock;
  ledgerFile: LedgerFile;
  /** Takes each line of the transcript as it comes. */
  sink?: ((line: string) => void) | undefined;
  onEvent?: ((event: RunEvent) => void) | undefined;
  /** Ends the run, but not its clean-up. Aborted with a `SuiteFault`, the run ends as one. */
  signal?: AbortSignal | undefined;
  /** Ends the clean-up too: what is open stays in the ledger. */
  abandon?: AbortSignal | undefined;
}

/** What a run tells while it goes on. */
export type RunEvent =
  | { event: 'begun'; runId: string; scenarios: number }
  | { event: 'scenario'; id: string; title: string; index: number; of: number }
  | { event: 'waiting'; text: string }
  | { event: 'resource'; entry: Entry }
  | { event: 'record'; record: TranscriptRecord }
  | { event: 'cleaning'; open: number }
  | { event: 'ended'; reason: string };
