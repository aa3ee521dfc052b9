import type { Change } from '../contract/extensions.ts';
import type { Clock } from '../ports/clock.ts';
import { type OrchestratorClient, ProviderError } from './orchestrator-client.ts';

const WAIT_MS = 30_000;
const EVERY_MS = 1_000;
const MORE_AFTER_MS = 100;
const MAX_PAUSE_MS = 60_000;

export interface FollowOptions {
  /** The last cursor whose changes were handled. Null: start from now. */
  cursor: string | null;
  clock: Clock;
  /** Stops following, also during a wait. */
  signal: AbortSignal;
  /** How long the orchestrator may wait for a change before it answers, in milliseconds; default and maximum: 30 s. */
  waitMs?: number;
  /** Minimum time between two requests, in milliseconds; default: 1 s. After a truncated reply: at most 100 ms. */
  everyMs?: number;
  /** Called for each failed request. The request is repeated after a pause that grows to a minute. */
  onProblem?: (error: ProviderError) => void;
}

export interface FollowedChanges {
  /** Anything may have changed: read all instances and volumes again. */
  reset: boolean;
  changes: readonly Change[];
  /** To be stored once the changes are handled. */
  cursor: string;
  /** By the client's own clock: all changes committed by then were listed. Null: no reply was complete yet. */
  asOf: number | null;
}

/**
 * Needs `extras.berth.changes`. Each request is sent when the caller asks for more. A lost or repeated reply loses no
 * change; a change can be listed more than once.
 * @throws {ProviderError} `not_found`: the orchestrator does not offer it
 */
export async function* followChanges(
  client: Pick<OrchestratorClient, 'listChanges'>,
  {
    clock,
    signal,
    waitMs = WAIT_MS,
    everyMs = EVERY_MS,
    onProblem = () => undefined,
    ...from
  }: FollowOptions,
): AsyncGenerator<FollowedChanges, void> {
  let { cursor } = from;
  /** Consecutive requests without progress: they failed, or each answered reset again. */
  let vain = 0;
  let asOf: number | null = null;
  let isCut = false;
  while (!signal.aborted) {
    const askedAt = clock.now();
    try {
      const page = await client.listChanges(cursor, { waitMs, signal });
      isCut = page.more;
      if (!isCut) asOf = askedAt;
      yield { reset: page.reset, changes: page.changes, cursor: page.cursor, asOf };
      vain = page.reset && cursor !== null ? vain + 1 : 0;
      cursor = page.cursor;
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof ProviderError) || error.problem === 'not_found') throw error;
      onProblem(error);
      vain += 1;
      // The orchestrator no longer accepts the cursor that it gave.
      if (error.problem === 'refused') cursor = null;
    }
    const pauseMs = pauseAfter(vain, everyMs, isCut);
    await pause(clock, askedAt + pauseMs - clock.now(), signal);
  }
}

function pauseAfter(vain: number, everyMs: number, isCut: boolean): number {
  if (vain > 0) return Math.min(everyMs * 2 ** vain, MAX_PAUSE_MS);
  return isCut ? Math.min(everyMs, MORE_AFTER_MS) : everyMs;
}

function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  if (ms <= 0 || signal.aborted) return Promise.resolve();
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = clock.setTimer(ms, resolve);
  const end = (): void => {
    timer.cancel();
    resolve();
  };
  signal.addEventListener('abort', end, { once: true });
  return promise.finally(() => signal.removeEventListener('abort', end));
}
