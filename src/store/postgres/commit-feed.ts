import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { escapeLiteral, type QueryResult } from 'pg';
import { toFailure } from './errors.ts';
import { BerthClient, connectionOptions } from './pool.ts';

/** What `pg_stat_activity` shows for the connection of a feed. */
export const FEED_NAME = 'berth commits';
const CHANNEL = 'berth_commits';
/** A notification holds less than 8,000 bytes. */
const IDS_PER_NOTICE = 100;
const RECONNECT_AFTER_MS = 250;
/** A notice of a commit and the answer to it race; so long the answer may come later before the notice counts. */
const OWN_ANSWER_AFTER_MS = 100;

export interface FeedTiming {
  /** How often the connection is heard, in milliseconds. */
  heartbeatMs: number;
  /** After such a silence, in milliseconds, a commit may have gone unheard. */
  believedForMs: number;
}

export const defaultTiming: FeedTiming = { heartbeatMs: 1_000, believedForMs: 3_000 };

export interface FeedListener {
  /**
   * Instances that another process has written, or this one in a commit whose answer has not come. The next heartbeat
   * counts when it is done.
   */
  changed(ids: readonly string[]): Promise<void>;
  /** Commits may have gone unheard. */
  missed(): void;
  /** From now on nothing is heard, for the `reason`; told once, until commits are heard again. */
  lost(reason: string): void;
  /** Commits are heard again. */
  found(): void;
  /** Sends words on the channel by a connection of somebody else's. */
  send(text: string): Promise<unknown>;
  /** Hears the database's time, as `ask` answers it, in milliseconds since the Unix epoch. */
  hearTime(ask: () => Promise<number>): Promise<void>;
}

interface Notice {
  from: string;
  instances: string[];
  /** Which commit of the process it is. */
  commit?: number;
  /** What the process said to hear itself. */
  echo?: number;
}

/** A commit of this process, from before it is sent until its changes are told. */
export interface OwnCommit {
  number: number;
  /** The statements that tell of it, to go right before the commit. */
  notices: string;
}

/** The database's time in milliseconds since the Unix epoch, as it runs on in a transaction. */
export const ASK_TIME = 'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now';
/** A heartbeat writes nothing that must be on a disk. */
const PREPARE = `SET synchronous_commit = off; LISTEN ${CHANNEL}`;

/**
 * What is committed on this database, heard on a connection of its own. A notice goes with its transaction, so it is
 * heard if and only if the commit happened, unless the connection breaks. A commit of this process is told by whoever
 * made it; where its answer stalls or is lost, the other processes know of it already, and so it is told by its notice.
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
  /** Commits of this process whose changes nobody has told here. */
  readonly #untold = new Set<number>();
  #commits = 0;
  /** Notices of such commits that are given the time for an answer. */
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

  /** Waits for what is being told, and no longer than a silence is believed. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    const ended = new AbortController();
    const { signal } = ended;
    const limit = pause(this.#timing.believedForMs, undefined, { signal, ref: false }).catch(() => undefined);
    await Promise.race([this.#running, limit]);
    ended.abort();
  }

  /**
   * A commit of this process may have happened, or happen yet, without its knowing: what was told before may be old.
   * It stays untold, so that its notice is heard whenever it comes.
   */
  doubtOwn(): void {
    this.#listener.missed();
  }

  /** A commit of this process has been told here, or has not happened. */
  told({ number }: OwnCommit): void {
    this.#untold.delete(number);
  }

  /**
   * Whether everything that was committed up to some moments ago is told. The time is that of the machine's running
   * clock, which goes on while the process is paused.
   */
  hears(): boolean {
    return performance.now() - this.#heardAt < this.#timing.believedForMs;
  }

  /** Of a transaction that is about to be committed. Until {@link told}, its notice counts here as well. */
  announce(instances: readonly string[]): OwnCommit {
    const number = ++this.#commits;
    if (instances.length > 0) this.#untold.add(number);
    const statements: string[] = [];
    for (let start = 0; start < instances.length; start += IDS_PER_NOTICE) {
      const part = instances.slice(start, start + IDS_PER_NOTICE);
      statements.push(toStatement({ from: this.#self, commit: number, instances: part }));
    }
    return { number, notices: statements.join('') };
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

  /** Ends when it is stopped; throws when the connection breaks or what was heard could not be told. */
  async #listen(): Promise<void> {
    const { signal } = this.#stopping;
    const { heartbeatMs, believedForMs } = this.#timing;
    // What was being told when the last connection broke is told before it is said that more may be missing.
    await this.#told.catch(() => undefined);
    this.#told = Promise.resolve();
    const client = new BerthClient({
      ...connectionOptions(this.#url),
      application_name: FEED_NAME,
      query_timeout: believedForMs,
    });
    client.on('error', () => undefined);
    client.on('notification', ({ payload = '' }) => this.#receive(payload));
    try {
      await client.connect();
      await client.query(PREPARE);
      this.#listener.missed();
      // What a connection says it may hear itself even where nobody else's words come through.
      await this.#hearEcho((text) => this.#listener.send(text));
      while (!signal.aborted) {
        const askedAt = performance.now();
        await this.#hearEcho((text) => this.#listener.hearTime(() => askTime(client, text)));
        await this.#allTold();
        this.#heardAt = askedAt;
        if (this.#isLost) this.#listener.found();
        this.#isLost = false;
        await pause(heartbeatMs, undefined, { signal }).catch(() => undefined);
      }
    } finally {
      await client.end().catch(() => undefined);
    }
  }

  /** Sends words on the channel and waits until they come back. */
  async #hearEcho(send: (text: string) => Promise<unknown>): Promise<void> {
    const echo = Promise.withResolvers<void>();
    const number = ++this.#echoes;
    this.#echo = { number, heard: echo.resolve };
    await send(toStatement({ from: this.#self, instances: [], echo: number }));
    const stopped = new AbortController();
    const { believedForMs } = this.#timing;
    const limit = pause(believedForMs, undefined, { signal: stopped.signal, ref: false }).then(() => {
      throw new Error(
        'what is notified does not come through: connect to PostgreSQL itself, without a connection pooler',
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

  /** The answer to the commit comes at any moment, or it stalls and the notice counts. */
  #awaitAnswer(notice: Notice): void {
    const isTold = (): boolean => notice.commit === undefined || !this.#untold.has(notice.commit);
    if (isTold()) return;
    const waiting = pause(OWN_ANSWER_AFTER_MS, undefined, { ref: false }).then(() => {
      this.#waiting.delete(waiting);
      if (!isTold()) this.#notifyListeners(notice);
    });
    this.#waiting.add(waiting);
  }

  /** Everything that was heard up to now. */
  async #allTold(): Promise<void> {
    await Promise.all(this.#waiting);
    await this.#told;
  }

  #notifyListeners({ instances }: Notice): void {
    if (instances.length === 0) return;
    for (const id of instances) this.#pending.add(id);
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

function toStatement(notice: Notice): string {
  return `SELECT pg_notify('${CHANNEL}', ${escapeLiteral(JSON.stringify(notice))});`;
}

async function askTime(client: BerthClient, before: string): Promise<number> {
  const results = (await client.query(before + ASK_TIME)) as unknown as QueryResult<{ now: number }>[];
  return results.at(-1)?.rows[0]?.now ?? Number.NaN;
}

/** Undefined: somebody else's words, or those of a Berth that writes them otherwise. */
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
