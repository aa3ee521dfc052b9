import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { escapeLiteral, type QueryResult } from 'pg';
import { BerthClient } from './client.ts';
import { toFailure } from './errors.ts';
import { connectionOptions } from './pool.ts';

/** The application name of a feed's connection, as `pg_stat_activity` shows it. */
export const FEED_NAME = 'berth commits';
const CHANNEL = 'berth_commits';
/** PostgreSQL limits a notification to less than 8,000 bytes. */
const IDS_PER_NOTICE = 50;
const RECONNECT_AFTER_MS = 250;
/** Grace period for the answer to an own commit. After it, the commit's notification is used. */
const OWN_ANSWER_AFTER_MS = 100;

export interface FeedTiming {
  /** Interval between checks of the connection, in milliseconds. */
  heartbeatMs: number;
  /** After this time without a heartbeat, in milliseconds, commits may have been missed. */
  staleAfterMs: number;
}

export const defaultTiming: FeedTiming = { heartbeatMs: 1_000, staleAfterMs: 3_000 };

export interface FeedListener {
  /**
   * Called with the instances that another process wrote. Also called for a commit of this process that has no answer.
   * The next heartbeat awaits it.
   */
  changed(ids: readonly string[]): Promise<void>;
  /** Commits may have been missed. */
  missed(): void;
  /** Commits are no longer received. Called once, until {@link found}. */
  lost(reason: string): void;
  /** Commits are received again. */
  found(): void;
  /** Sends a notification on another connection. */
  send(text: string): Promise<unknown>;
  /** Reads the database's time. `ask` returns milliseconds since the Unix epoch. */
  hearTime(ask: () => Promise<number>): Promise<void>;
}

interface Notice {
  from: string;
  instances: string[];
  /** The number of the commit in its process. */
  commit?: number;
  /** The number of an echo, by which a process checks that notifications arrive. */
  echo?: number;
}

/** A prepared statement for the driver. Declared here, so that the package's types do not depend on the driver's. */
interface Statement {
  name: string;
  text: string;
  values: unknown[];
}

/** A commit of this process, from before it is sent until the listeners were notified of its changes. */
export interface OwnCommit {
  number: number;
  /** The statements that send its notifications. They run right before the COMMIT. */
  notices: Statement[];
}

/** The database's time in milliseconds since the Unix epoch. It also advances within a transaction. */
export const ASK_TIME = 'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now';
const NOTIFY = { name: 'berth_notify', text: 'SELECT pg_notify($1, $2)' };
/** A heartbeat writes no durable data. */
const PREPARE = `SET synchronous_commit = off; LISTEN ${CHANNEL}`;

/**
 * Receives the commits of all processes on this database, by LISTEN on its own connection. A notification is part of
 * its transaction: it arrives exactly if the commit happened, unless the connection breaks. The committing code
 * notifies listeners of this process's own commits. If the answer to one stalls or is lost, its notification does so.
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
  #delivering: Promise<void> = Promise.resolve();
  /** Own commits whose changes the listeners have not received yet. */
  readonly #undelivered = new Set<number>();
  #commits = 0;
  /** Notifications of such commits that wait for the answer during the grace period. */
  readonly #waiting = new Set<Promise<void>>();
  #isLost = false;
  #echoes = 0;
  #echo: { number: number; heard: () => void } | undefined;

  constructor(url: string, listener: FeedListener, timing: FeedTiming) {
    this.#url = url;
    this.#listener = listener;
    this.#timing = timing;
  }

  start(): void {
    this.#running ??= this.#run();
  }

  /** Waits for running notifications, at most `staleAfterMs`. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    const ended = new AbortController();
    const { signal } = ended;
    const limit = pause(this.#timing.staleAfterMs, undefined, { signal, ref: false }).catch(() => undefined);
    await Promise.race([this.#running, limit]);
    ended.abort();
  }

  /**
   * The outcome of an own commit is unknown, so the listeners' data may be outdated. The commit stays undelivered: its
   * notification is used whenever it arrives.
   */
  doubtOwn(): void {
    this.#listener.missed();
  }

  /** The listeners were notified of an own commit, or it did not happen. */
  markDelivered({ number }: OwnCommit): void {
    this.#undelivered.delete(number);
  }

  /**
   * Whether listeners have all commits up to a short time ago. Uses the monotonic clock, which advances while the
   * process is paused.
   */
  isCurrent(): boolean {
    return performance.now() - this.#heardAt < this.#timing.staleAfterMs;
  }

  /** Registers a transaction that is about to commit. Until {@link markDelivered}, its notification is used here as well. */
  announce(instances: readonly string[]): OwnCommit {
    const number = ++this.#commits;
    const parts = inParts(instances);
    if (parts.length > 0) this.#undelivered.add(number);
    const notices = parts.map((part): Statement => {
      const notice: Notice = { from: this.#self, commit: number, instances: part };
      return { ...NOTIFY, values: [CHANNEL, JSON.stringify(notice)] };
    });
    return { number, notices };
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await this.#listen().catch((error: unknown) => this.#lose(error));
      this.#heardAt = Number.NEGATIVE_INFINITY;
      await pause(RECONNECT_AFTER_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  #lose(error: unknown): void {
    if (this.#isLost || this.#stopping.signal.aborted) return;
    this.#isLost = true;
    this.#listener.lost((toFailure(error) ?? (error as Error)).message);
  }

  /** Runs until it is stopped. Throws if the connection breaks or a listener fails. */
  async #listen(): Promise<void> {
    const { signal } = this.#stopping;
    const { heartbeatMs, staleAfterMs } = this.#timing;
    // Listeners first get the pending changes of the last connection, then learn that more may be missing.
    await this.#delivering.catch(() => undefined);
    this.#delivering = Promise.resolve();
    const client = new BerthClient({
      ...connectionOptions(this.#url),
      application_name: FEED_NAME,
      query_timeout: staleAfterMs,
    });
    const broken = new AbortController();
    const over = AbortSignal.any([signal, broken.signal]);
    client.on('error', (error) => broken.abort(error));
    client.on('end', () => {
      broken.abort();
      this.#heardAt = Number.NEGATIVE_INFINITY;
    });
    client.on('notification', ({ payload = '' }) => this.#receive(payload));
    try {
      await client.connect();
      await client.query(PREPARE);
      this.#listener.missed();
      // Another connection sends the echo: a pooler may pass on only notifications that a connection sent itself.
      await this.#receiveEcho((text) => this.#listener.send(text));
      while (!signal.aborted) {
        const askedAt = performance.now();
        await this.#receiveEcho((text) => this.#listener.hearTime(() => askTime(client, text)));
        await this.#allDelivered();
        broken.signal.throwIfAborted();
        this.#heardAt = askedAt;
        if (this.#isLost) this.#listener.found();
        this.#isLost = false;
        await pause(heartbeatMs, undefined, { signal: over }).catch(() => undefined);
        broken.signal.throwIfAborted();
      }
    } finally {
      await client.end().catch(() => undefined);
    }
  }

  /** Sends a notification and waits until it arrives. */
  async #receiveEcho(send: (text: string) => Promise<unknown>): Promise<void> {
    const echo = Promise.withResolvers<void>();
    const number = ++this.#echoes;
    this.#echo = { number, heard: echo.resolve };
    await send(toStatement({ from: this.#self, instances: [], echo: number }));
    const stopped = new AbortController();
    const { staleAfterMs } = this.#timing;
    const limit = pause(staleAfterMs, undefined, { signal: stopped.signal, ref: false }).then(() => {
      throw new Error(
        'notifications do not arrive: connect to PostgreSQL directly, without a connection pooler',
      );
    });
    try {
      await Promise.race([echo.promise, limit]);
    } finally {
      stopped.abort();
      limit.catch(() => undefined);
    }
  }

  #receive(payload: string): void {
    const notice = toNotice(payload);
    if (notice === undefined) {
      this.#listener.missed();
      return;
    }
    if (notice.from === this.#self) {
      if (notice.echo !== undefined && notice.echo === this.#echo?.number) this.#echo.heard();
      else this.#awaitAnswer(notice);
    } else this.#notifyListeners(notice);
  }

  /** Waits for the answer to the commit during the grace period, then uses the notification. */
  #awaitAnswer(notice: Notice): void {
    const isDelivered = (): boolean => notice.commit === undefined || !this.#undelivered.has(notice.commit);
    if (isDelivered()) return;
    const waiting = pause(OWN_ANSWER_AFTER_MS, undefined, { ref: false }).then(() => {
      this.#waiting.delete(waiting);
      if (!isDelivered()) this.#notifyListeners(notice);
    });
    this.#waiting.add(waiting);
  }

  /** Waits until the listeners were notified of everything received. */
  async #allDelivered(): Promise<void> {
    await Promise.all(this.#waiting);
    await this.#delivering;
  }

  #notifyListeners({ instances }: Notice): void {
    if (instances.length === 0) return;
    for (const id of instances) this.#pending.add(id);
    this.#delivering = this.#delivering.then(() => this.#deliver());
    // The next await receives the rejection. Until then it must not count as unhandled.
    this.#delivering.catch(() => undefined);
  }

  /** Notifies listeners of everything received during the previous notification. */
  async #deliver(): Promise<void> {
    const ids = [...this.#pending];
    this.#pending = new Set();
    if (ids.length > 0) await this.#listener.changed(ids);
  }
}

function inParts(ids: readonly string[]): string[][] {
  const count = Math.ceil(ids.length / IDS_PER_NOTICE);
  return Array.from({ length: count }, (_, part) =>
    ids.slice(part * IDS_PER_NOTICE, (part + 1) * IDS_PER_NOTICE),
  );
}

function toStatement(notice: Notice): string {
  return `SELECT pg_notify('${CHANNEL}', ${escapeLiteral(JSON.stringify(notice))});`;
}

async function askTime(client: BerthClient, before: string): Promise<number> {
  const results = (await client.query(before + ASK_TIME)) as unknown as QueryResult<{ now: number }>[];
  return results.at(-1)?.rows[0]?.now ?? Number.NaN;
}

/** Returns undefined if the payload is from another program, or from a Berth with another format. */
function toNotice(payload: string): Notice | undefined {
  try {
    const notice = JSON.parse(payload) as Partial<Notice>;
    return typeof notice.from === 'string' && Array.isArray(notice.instances)
      ? (notice as Notice)
      : undefined;
  } catch {
    return undefined;
  }
}
