import type { Reply } from './client.ts';
import type { Journal } from './journal.ts';

/** How long a replica may still show the state before the one that another has shown. */
const STALE_MS = 3_000;

/** A state that replies have shown. A replica that has shown it never shows an earlier one again; others do so only briefly. */
class Shown {
  /** When the first reply that showed it was there. */
  firstAt: number | undefined;
  readonly #replicas = new Map<string, number>();

  note({ replica, receivedAt }: Reply): void {
    this.firstAt ??= receivedAt;
    if (!this.#replicas.has(replica)) this.#replicas.set(replica, receivedAt);
  }

  /** For how long a reply with an earlier state was behind: `Infinity` if its replica has to know better. */
  staleMs({ replica, sentAt }: Reply): number {
    const staleMs = sentAt - (this.firstAt ?? sentAt);
    const knowsBetter = sentAt > (this.#replicas.get(replica) ?? sentAt) || staleMs > STALE_MS;
    return knowsBetter ? Number.POSITIVE_INFINITY : Math.max(0, staleMs);
  }
}

/**
 * One instance or volume as its buyer knows it, and what may be read of it: the promises that the orchestrator made
 * in its replies, held against every later reply of every replica.
 */
export class Possession {
  readonly kind: 'instances' | 'volumes';
  readonly key: string;
  readonly request: Readonly<Record<string, unknown>>;
  /** Undefined until a create was answered. */
  id: string | undefined;
  /** A create had no clear reply: it may have been carried out, or may still be. */
  isCreateInDoubt = false;
  /** When the 201 was there. */
  boughtAt: number | undefined;
  /** From now on 404 may be right. */
  deleteSentAt: number | undefined;
  /** The DELETE was answered 200, 204 or 404: it must go. */
  deleteAnsweredAt: number | undefined;
  /** A DELETE had no clear reply: whatever is answered later, it may go. */
  isDeleteInDoubt = false;
  /** A stop or start was sent: it may be in any state on the way. */
  isOrdered = false;
  readonly #online = new Shown();
  readonly #gone = new Shown();
  readonly #journal: Journal;

  constructor(
    kind: 'instances' | 'volumes',
    key: string,
    request: Readonly<Record<string, unknown>>,
    journal: Journal,
  ) {
    this.kind = kind;
    this.key = key;
    this.request = request;
    this.#journal = journal;
  }

  /** When a read first said 404. */
  get goneAt(): number | undefined {
    return this.#gone.firstAt;
  }

  get path(): string {
    return `/${this.kind}/${this.id}`;
  }

  get isLive(): boolean {
    return this.id !== undefined && this.deleteSentAt === undefined;
  }

  /** O: a create that was answered 201 is there from then on; the same key is the same one for ever. */
  created({ body, receivedAt, replica }: Reply): void {
    const id = String(body['id']);
    if (this.id !== undefined && this.id !== id)
      this.#journal.lose('one Idempotency-Key made two', {
        key: this.key,
        first: this.id,
        second: id,
        replica,
      });
    this.id ??= id;
    this.boughtAt ??= receivedAt;
  }

  /** Judges a read of it. True: this is the first 404, so it must be gone in the books too. */
  read(reply: Reply): boolean {
    if (reply.status === 404) return this.#notFound(reply);
    if (reply.status !== 200) return false;
    const status = String(reply.body['status']);
    this.#judgeStale(this.#gone, 'was gone and is there again', reply);
    if (status === 'ERROR') this.#lose('failed', reply);
    if (this.kind === 'instances') this.#judgeStatus(status, reply);
    return false;
  }

  /** A replica learns of another's commit soon; until then it shows an earlier state. */
  #judgeStale(later: Shown, loss: string, reply: Reply): void {
    const staleMs = later.staleMs(reply);
    if (staleMs === Number.POSITIVE_INFINITY) this.#lose(loss, reply);
    else this.#journal.longestStaleMs = Math.max(this.#journal.longestStaleMs, staleMs);
  }

  #judgeStatus(status: string, reply: Reply): void {
    const isDeleted = this.deleteAnsweredAt !== undefined && reply.sentAt > this.deleteAnsweredAt + STALE_MS;
    if (isDeleted && status !== 'DESTROYING') this.#lose('was deleted and goes on', reply);
    const isLeftAlone = !this.isOrdered && this.deleteSentAt === undefined;
    if (!isLeftAlone) return;
    if (status === 'ONLINE') this.#online.note(reply);
    else this.#judgeStale(this.#online, 'was ONLINE and nobody touched it', reply);
  }

  #notFound(reply: Reply): boolean {
    if (this.deleteSentAt === undefined) this.#lose('is answered 404 and was never deleted', reply);
    const isFirst = this.goneAt === undefined;
    this.#gone.note(reply);
    return isFirst;
  }

  #lose(what: string, { replica, status, body, sentAt, receivedAt }: Reply): void {
    this.#journal.lose(`${this.id} ${what}`, {
      replica,
      status,
      body,
      sentAt: new Date(sentAt).toISOString(),
      tookMs: receivedAt - sentAt,
      boughtAt: this.boughtAt,
      deleteSentAt: this.deleteSentAt,
      deleteAnsweredAt: this.deleteAnsweredAt,
      goneAt: this.goneAt,
    });
  }
}
