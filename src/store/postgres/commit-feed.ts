import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { Client, escapeLiteral } from 'pg';
import { connectionOptions } from './pool.ts';

/** What `pg_stat_activity` shows for the connection of a feed. */
export const FEED_NAME = 'berth commits';
const CHANNEL = 'berth_commits';
/** A notification holds less than 8,000 bytes. */
const IDS_PER_NOTICE = 100;
const RECONNECT_AFTER_MS = 250;

export interface FeedTiming {
  /** How often the connection is heard, in milliseconds. */
  heartbeatMs: number;
  /** After such a silence, in milliseconds, a commit may have gone unheard. */
  believedForMs: number;
}

export const defaultTiming: FeedTiming = { heartbeatMs: 1_000, believedForMs: 3_000 };

export interface FeedListener {
  /** Instances that another process has written. The next heartbeat counts when it is done. */
  changed(ids: readonly string[]): Promise<void>;
  /** Commits of other processes may have gone unheard. */
  missed(): void;
}

interface Notice {
  from: string;
  instances: string[];
}

/**
 * What the other processes on this database commit, heard on a connection of its own. A notice goes with its
 * transaction, so it is heard if and only if the commit happened, unless the connection breaks.
 */
export class CommitFeed {
  readonly #url: string;
  readonly #listener: FeedListener;
  readonly #timing: FeedTiming;
  readonly #self = randomUUID();
  readonly #stopping = new AbortController();
  #running: Promise<void> | undefined;
  #heardAt = Number.NEGATIVE_INFINITY;
  #pending = new Set<string>();
  #told: Promise<void> = Promise.resolve();

  constructor(url: string, listener: FeedListener, timing: FeedTiming) {
    this.#url = url;
    this.#listener = listener;
    this.#timing = timing;
  }

  start(): void {
    this.#running ??= this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  /**
   * Whether everything that was committed up to some moments ago is told. The time is that of the machine's running
   * clock, which goes on while the process is paused.
   */
  hears(): boolean {
    return performance.now() - this.#heardAt < this.#timing.believedForMs;
  }

  /** The statements by which a transaction tells the other processes, to go right before its commit. */
  notices(instances: readonly string[]): string {
    const statements: string[] = [];
    for (let start = 0; start < instances.length; start += IDS_PER_NOTICE) {
      const notice: Notice = { from: this.#self, instances: instances.slice(start, start + IDS_PER_NOTICE) };
      statements.push(`SELECT pg_notify('${CHANNEL}', ${escapeLiteral(JSON.stringify(notice))});`);
    }
    return statements.join('');
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await this.#listen().catch(() => undefined);
      this.#heardAt = Number.NEGATIVE_INFINITY;
      await pause(RECONNECT_AFTER_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  /** Ends when it is stopped; throws when the connection breaks or what was heard could not be told. */
  async #listen(): Promise<void> {
    const { signal } = this.#stopping;
    const { heartbeatMs, believedForMs } = this.#timing;
    // What was being told when the last connection broke is told before it is said that more may be missing.
    await this.#told.catch(() => undefined);
    this.#told = Promise.resolve();
    const client = new Client({
      ...connectionOptions(this.#url),
      ...{ application_name: FEED_NAME, query_timeout: believedForMs },
    });
    client.on('error', () => undefined);
    client.on('notification', ({ payload = '' }) => this.#receive(payload));
    try {
      await client.connect();
      await client.query(`LISTEN ${CHANNEL}`);
      this.#listener.missed();
      while (!signal.aborted) {
        const askedAt = performance.now();
        await client.query('SELECT 1');
        await this.#told;
        this.#heardAt = askedAt;
        await pause(heartbeatMs, undefined, { signal }).catch(() => undefined);
      }
    } finally {
      await client.end().catch(() => undefined);
    }
  }

  #receive(payload: string): void {
    const notice = toNotice(payload);
    if (notice === undefined) {
      this.#listener.missed();
      return;
    }
    if (notice.from === this.#self) return;
    for (const id of notice.instances) this.#pending.add(id);
    this.#told = this.#told.then(() => this.#tell());
    // Whoever awaits it next hears of it; until then a rejection is no accident.
    this.#told.catch(() => undefined);
  }

  /** Tells all that came while the one before was told. */
  async #tell(): Promise<void> {
    const ids = [...this.#pending];
    this.#pending = new Set();
    if (ids.length > 0) await this.#listener.changed(ids);
  }
}

/** Undefined: somebody else's words, or those of a Berth that writes them otherwise. */
function toNotice(payload: string): Notice | undefined {
  try {
    const { from, instances } = JSON.parse(payload) as Partial<Notice>;
    return typeof from === 'string' && Array.isArray(instances) ? { from, instances } : undefined;
  } catch {
    return undefined;
  }
}
