import { type FollowedChanges, followChanges } from '../../client/follow-changes.ts';
import { ProviderError } from '../../client/orchestrator-client.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import type { Provider } from '../providers/provider.ts';
import { type LastAnswer, LONGEST_MS } from './last-answers.ts';

/** How long the provider may hold a request before it answers. Confirmations are at most about twice as old. */
const WAIT_MS = 10_000;
/** A server of the provider may answer a poll with a state that is this old. */
const LAG_MS = 10_000;
/** Pause before the next attempt if the provider announces changes but does not offer them. */
const AGAIN_MS = 10 * 60_000;
/** If more instances than this were listed in the last 20 minutes, each instance is polled once. */
const MOST_LISTED = 100_000;

interface FeedDeps {
  clock: Clock;
  log: Log;
  provider: Pick<Provider, 'id' | 'client'>;
  /** A last reply of this age, in milliseconds, no longer confirms anything. */
  maxAgeMs: number;
  /** Called when the provider lists this instance as changed. */
  changed: (providerInstanceId: string) => void;
}

/**
 * Follows `GET /v1/x/changes`. An instance that is not listed is unchanged since its last poll. While the list fails,
 * all instances are polled.
 */
export class ChangesFeed {
  readonly #deps: FeedDeps;
  #running: { ended: Promise<void>; end: AbortController } | undefined;
  #againAt = Number.NEGATIVE_INFINITY;
  /** Since when the changes are complete; null: they are not followed. */
  #since: number | null = null;
  /** The time up to which the changes are complete. */
  #asOf = 0;
  #isLoggedAsLost = false;
  /** When each instance was last listed, the oldest first. */
  readonly #listedAt = new Map<string, number>();

  constructor(deps: FeedDeps) {
    this.#deps = deps;
  }

  start(): void {
    if (this.#running !== undefined || this.#deps.clock.now() < this.#againAt) return;
    const end = new AbortController();
    const ended = this.#follow(end.signal).finally(() => {
      this.#running = undefined;
      this.#since = null;
    });
    this.#running = { ended, end };
  }

  async stop(): Promise<void> {
    this.#running?.end.abort();
    await this.#running?.ended;
  }

  /** The time up to which an instance is known to be unchanged since its last poll; null: a poll is needed. */
  confirmedUntil({ providerInstanceId, askedAt }: LastAnswer): number | null {
    if (this.#since === null || this.#isOld) return null;
    const changedAt = Math.max(this.#since, this.#listedAt.get(providerInstanceId) ?? 0);
    return askedAt > changedAt + LAG_MS && this.#asOf > askedAt ? this.#asOf : null;
  }

  get #isOld(): boolean {
    const { clock, maxAgeMs } = this.#deps;
    return clock.now() - this.#asOf > maxAgeMs;
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const { provider, clock, log } = this.#deps;
    const onProblem = (error: ProviderError) => this.#failed(error);
    const options = { cursor: null, clock, signal, waitMs: WAIT_MS, onProblem };
    try {
      for await (const page of followChanges(provider.client, options)) this.#receive(page);
    } catch (error) {
      if (!(error instanceof ProviderError)) throw error;
      this.#againAt = clock.now() + AGAIN_MS;
      log.warn(
        { provider: provider.id, detail: error.message },
        'the provider announces changes but does not list them: its instances are polled',
      );
    }
  }

  /** Logs the failure separately, because calls about deployments may all succeed. */
  #failed({ problem, message }: ProviderError): void {
    if (this.#isLoggedAsLost || !this.#isOld) return;
    this.#isLoggedAsLost = true;
    this.#deps.log.warn(
      { provider: this.#deps.provider.id, problem, detail: message },
      'the change feed of the provider cannot be read: its instances are polled',
    );
  }

  #receive({ reset, changes, asOf }: FollowedChanges): void {
    const { clock, provider, log, changed } = this.#deps;
    const now = clock.now();
    if (this.#isLoggedAsLost)
      log.info({ provider: provider.id }, 'the change feed of the provider is read again');
    this.#isLoggedAsLost = false;
    if (reset || this.#listedAt.size > MOST_LISTED) {
      this.#since = now;
      this.#listedAt.clear();
    }
    for (const { kind, id } of changes) {
      if (kind !== 'instance') continue;
      this.#listedAt.delete(id);
      this.#listedAt.set(id, now);
      changed(id);
    }
    this.#asOf = asOf ?? this.#asOf;
    // No kept answer is older than this.
    for (const [id, at] of this.#listedAt) {
      if (at > now - 2 * LONGEST_MS) break;
      this.#listedAt.delete(id);
    }
  }
}
