import type { Clock } from '../http/clock.ts';
import type { SignIn } from '../http/sign-in.ts';
import type { Transport } from '../http/transport.ts';
import type { Entry, LedgerFile } from '../resources/ledger.ts';
import type { RestartTarget } from '../scenarios/restart/restart-target.ts';
import type { SshClient } from '../ssh/ssh-client.ts';
import type { Draws } from '../transcript/draws.ts';
import type { ChosenSettings, Level, TranscriptRecord } from '../transcript/records.ts';

/** The target and the settings of a run. */
export interface RunOptions extends SignIn {
  /** As clients of the target use it, `https://…/v1`, without a trailing slash. */
  baseUrl: string;
  /** A second key of the same account. */
  secondApiKey?: string | undefined;
  /** A key of another account. */
  otherAccountKey?: string | undefined;
  level: Level;
  /** Ids of checks; default: all of the level. */
  only?: readonly string[] | undefined;
  /** A text chosen by whoever will verify the report. The report contains it. */
  nonce?: string | undefined;
  settings: ChosenSettings;
  /** Whether resources without a known price may be created. The cap cannot cover them. */
  acceptsUnknownCost?: boolean | undefined;
}

/** The system's services that a run uses. */
export interface RunParts {
  runId: string;
  draws: Draws;
  transport: Transport;
  ssh: SshClient;
  clock: Clock;
  ledgerFile: LedgerFile;
  /** Restarts the target, once, while an instance of the run exists. */
  restartTarget?: RestartTarget | undefined;
  /** Receives each line of the transcript. */
  sink?: ((line: string) => void) | undefined;
  onEvent?: ((event: RunEvent) => void) | undefined;
  /** Ends the run, but not its clean-up. With a `SuiteFault` as the reason, the run ends as a fault of the suite. */
  signal?: AbortSignal | undefined;
  /** Called after each scenario. True stops the run there and keeps its resources. */
  mayKeep?: ((records: readonly TranscriptRecord[]) => boolean) | undefined;
  /** Ends the clean-up too: open entries stay in the ledger. */
  abandon?: AbortSignal | undefined;
}

/** Progress events of a run. */
export type RunEvent =
  | { event: 'begun'; runId: string; scenarios: number }
  | { event: 'scenario'; id: string; title: string; index: number; of: number }
  | { event: 'waiting'; text: string }
  /** A message for the user that cannot wait. */
  | { event: 'notice'; text: string }
  /** The first failure, with the time that is left. */
  | { event: 'failed'; text: string }
  | { event: 'resource'; entry: Entry }
  | { event: 'record'; record: TranscriptRecord }
  | { event: 'cleaning'; open: number }
  | { event: 'ended'; reason: string };
