import { timingSafeEqual } from 'node:crypto';
import { digestSecret } from '../../keys/api-key.ts';
import type { Clock, Random } from '../../ports/clock.ts';
import type { AuditedStore } from '../audit.ts';
import type { Operators } from '../keys.ts';
import type { AuditWriter, OperatorSessionReader, OperatorSessionWriter, Role } from '../model.ts';

/** Lifetime of a session, even if it is used. */
export const SESSION_MS = 12 * 3_600_000;
/** Maximum number of sessions of one key. At the limit, a new session replaces the oldest. */
const MAX_SESSIONS_PER_KEY = 100;
const SECRET_BYTES = 32;

type SessionTransaction = { audit: AuditWriter; operatorSessions: OperatorSessionWriter };

/** A store that has the console's sessions. */
export interface SessionStore extends AuditedStore<SessionTransaction> {
  read: { operatorSessions: OperatorSessionReader };
}

interface Deps {
  store: SessionStore;
  operators: Pick<Operators, 'ofId'>;
  clock: Pick<Clock, 'now'>;
  random: Random;
}

/** A logged-in operator. */
export interface Session {
  /** The id of the operator key that opened it. */
  keyId: string;
  /** The name of the operator key. */
  operator: string;
  role: Role;
  /** When the operator signed in, in milliseconds since the epoch. */
  beganAt: number;
  /** CSRF token. Every form of the session contains it. */
  csrf: string;
}

/** The console's sessions. They are in the store, so that they outlive a restart and end on every server at once. */
export class Sessions {
  readonly #deps: Deps;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Opens a session. Returns the secret for the cookie. */
  async begin(tx: SessionTransaction, keyId: string): Promise<string> {
    const { clock, random } = this.#deps;
    const secret = random.bytes(SECRET_BYTES).toString('base64url');
    const now = clock.now();
    const record = { digest: digestSecret(secret), keyId, endsAt: now + SESSION_MS };
    await tx.operatorSessions.insert(record, { now, most: MAX_SESSIONS_PER_KEY });
    return secret;
  }

  /** Undefined if the session or its key has ended. Rejects while the store does not answer. */
  async find(secret: string | undefined): Promise<Session | undefined> {
    if (secret === undefined) return undefined;
    const { store, operators, clock } = this.#deps;
    const session = await store.read.operatorSessions.byDigest(digestSecret(secret));
    if (session === null || session.endsAt <= clock.now()) return undefined;
    const key = await operators.ofId(session.keyId);
    if (key === null) return undefined;
    const beganAt = session.endsAt - SESSION_MS;
    return { keyId: key.id, operator: key.name, role: key.role, beganAt, csrf: csrfOf(secret) };
  }

  async end(secret: string | undefined): Promise<void> {
    if (secret === undefined) return;
    await this.#deps.store.transact((tx) => tx.operatorSessions.remove(digestSecret(secret)));
  }
}

/** Derived from the secret, so that the store has nothing with which a form can be sent. */
function csrfOf(secret: string): string {
  return digestSecret(`csrf ${secret}`).toString('base64url');
}

/** Whether the form has the CSRF token of this session. */
export function isOwnForm({ csrf }: Session, given: string | null): boolean {
  const [own, other] = [csrf, given ?? ''].map((text) => Buffer.from(text)) as [Buffer, Buffer];
  return own.length === other.length && timingSafeEqual(own, other);
}
