import { DAY_MS } from '../../ports/clock.ts';
import { JOB_ROUND_MS } from '../../work/lease-time.ts';
import type { LeasedJob } from '../../work/leased-job.ts';
import type { Deps } from '../deps.ts';
import { leasedJob } from '../model/fenced-store.ts';
import type { MailRecord } from '../model/ledger-records.ts';
import type { Store } from '../model/store.ts';
import { type Mailer, MailRefused } from './mailer.ts';

const EVERY_MS = 5_000;
const BATCH = 20;
const FIRST_RETRY_MS = 60_000;
const LONGEST_RETRY_MS = 6 * 3_600_000;
const GIVE_UP_AFTER_MS = 3 * DAY_MS;
const MAX_ERROR_LENGTH = 300;
const DELETE_EVERY_MS = 600_000;
const DELETED_AT_ONCE = 500;

type DispatchDeps = Pick<Deps, 'store' | 'clock' | 'random' | 'log' | 'options'> & { mailer: Mailer | null };

/**
 * Sends the queued mails. After a crash, a mail may be sent again with the same Message-ID. Without a mailer, mails
 * wait and are given up. Mails that were sent or given up are deleted after the configured time.
 */
export class MailDispatcher {
  readonly #deps: DispatchDeps;
  readonly #job: LeasedJob<Store>;
  #isStopped = false;
  #deletesAt = 0;

  constructor(deps: DispatchDeps) {
    this.#deps = deps;
    this.#job = leasedJob(deps, { name: 'mail', everyMs: EVERY_MS, work: (store) => this.#work(store) });
  }

  start(): void {
    this.#job.start();
  }

  /** Waits for the mail that is being sent. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#job.stop();
  }

  /** Runs one round if this process holds the lease. It never rejects. */
  run(): Promise<void> {
    return this.#job.run();
  }

  async #work(store: Store): Promise<void> {
    await this.#sendDue(store);
    await this.#deleteOld(store);
  }

  /** Deletes one page per round. */
  async #deleteOld(store: Store): Promise<void> {
    const { clock, options } = this.#deps;
    const { mailsKeptMs } = options;
    const now = clock.now();
    if (mailsKeptMs === null || now < this.#deletesAt) return;
    const deleted = await store.transact((tx) => tx.mail.deleteEnded(now - mailsKeptMs, DELETED_AT_ONCE));
    this.#deletesAt = deleted < DELETED_AT_ONCE ? now + DELETE_EVERY_MS : now;
  }

  async #sendDue(store: Store): Promise<void> {
    const { clock, mailer } = this.#deps;
    const startedAt = clock.now();
    for (;;) {
      const due = await store.read.mail.due(clock.now(), BATCH);
      for (const mail of due) {
        if (this.#isStopped || clock.now() - startedAt >= JOB_ROUND_MS) return;
        if (await this.#giveUpIfOld(store, mail)) continue;
        if (mailer === null || (await this.#send(store, mail, mailer)) === 'unavailable') return;
      }
      if (due.length < BATCH) return;
    }
  }

  /** Gives up a mail that is too old. Without a mailer nothing is logged, since that was logged at the start. */
  async #giveUpIfOld(
    store: Store,
    { id, kind, attempts, createdAt, lastError }: MailRecord,
  ): Promise<boolean> {
    const { clock, log, mailer } = this.#deps;
    const now = clock.now();
    if (now - createdAt < GIVE_UP_AFTER_MS) return false;
    const cause = lastError ?? 'no mail server accepted it within three days';
    if (mailer !== null) log.error({ mailId: id, kind, attempts, cause }, 'a mail is given up');
    await this.#write(store, id, (record) => ({ ...record, lastError: cause, failedAt: now }));
    return true;
  }

  async #send(store: Store, mail: MailRecord, mailer: Mailer): Promise<'sent' | 'refused' | 'unavailable'> {
    const { clock } = this.#deps;
    try {
      await mailer.send(mail);
    } catch (error) {
      await this.#putOff(store, mail, error);
      return error instanceof MailRefused ? 'refused' : 'unavailable';
    }
    await this.#write(store, mail.id, (record) => ({
      ...record,
      attempts: record.attempts + 1,
      lastError: null,
      sentAt: clock.now(),
    }));
    return 'sent';
  }

  async #putOff(store: Store, mail: MailRecord, error: unknown): Promise<void> {
    const { clock, log } = this.#deps;
    const now = clock.now();
    const attempts = mail.attempts + 1;
    const lastError = (error instanceof Error ? error.message : String(error)).slice(0, MAX_ERROR_LENGTH);
    const fields = { mailId: mail.id, kind: mail.kind, attempts, cause: lastError };
    log.warn(fields, 'a mail was not sent; it will be retried');
    const dueAt = now + this.#retryMs(attempts);
    await this.#write(store, mail.id, (record) => ({ ...record, attempts, lastError, dueAt }));
  }

  /** The time until the next attempt. It doubles each time, with jitter. */
  #retryMs(attempts: number): number {
    const longestMs = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** (attempts - 1));
    return Math.round(longestMs * (0.5 + this.#deps.random.next() / 2));
  }

  async #write(store: Store, id: string, change: (record: MailRecord) => MailRecord): Promise<void> {
    await store.transact(async (tx) => {
      const record = await tx.mail.byId(id);
      if (record !== null && record.sentAt === null) await tx.mail.update(change(record));
    });
  }
}
