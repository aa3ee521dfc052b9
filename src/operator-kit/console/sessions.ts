import { timingSafeEqual } from 'node:crypto';
import { digestSecret } from '../../keys/api-key.ts';
import type { Clock, Random } from '../../ports/clock.ts';

/** Lifetime of a session, even if it is used. */
export const SESSION_MS = 12 * 3_600_000;
/** Maximum number of sessions of one key. At the limit, a new session replaces its oldest. */
export const MAX_SESSIONS_PER_KEY = 100;
const SECRET_BYTES = 32;

/** A logged-in operator. */
export interface Session {
  /** The id of the operator key that opened it. */
  keyId: string;
  /** The name of the operator key. */
  operator: string;
  /** CSRF token. Every form of the session contains it. */
  csrf: string;
  endsAt: number;
}

/** The console's sessions, in memory: a restart ends them all. Only the digest of a session's secret is kept. */
export class Sessions {
  readonly #deps: { clock: Pick<Clock, 'now'>; random: Random };
  readonly #open = new Map<string, Session>();

  constructor(deps: { clock: Pick<Clock, 'now'>; random: Random }) {
    this.#deps = deps;
  }

  /** Opens a session. Returns the secret for the cookie. */
  begin({ id: keyId, name: operator }: { id: string; name: string }): string {
    const { clock, random } = this.#deps;
    const now = clock.now();
    for (const [key, { endsAt }] of this.#open) if (endsAt <= now) this.#open.delete(key);
    const own = [...this.#open].flatMap(([key, session]) => (session.keyId === keyId ? [key] : []));
    if (own.length >= MAX_SESSIONS_PER_KEY) this.#open.delete(own[0] ?? '');
    const secret = random.bytes(SECRET_BYTES).toString('base64url');
    const csrf = random.bytes(SECRET_BYTES).toString('base64url');
    this.#open.set(keyOf(secret), { keyId, operator, csrf, endsAt: now + SESSION_MS });
    return secret;
  }

  find(secret: string | undefined): Session | undefined {
    if (secret === undefined) return undefined;
    const session = this.#open.get(keyOf(secret));
    return session !== undefined && this.#deps.clock.now() < session.endsAt ? session : undefined;
  }

  end(secret: string | undefined): void {
    if (secret !== undefined) this.#open.delete(keyOf(secret));
  }
}

function keyOf(secret: string): string {
  return digestSecret(secret).toString('base64url');
}

/** Whether the form has the CSRF token of this session. */
export function isOwnForm({ csrf }: Session, given: string | null): boolean {
  const [own, other] = [csrf, given ?? ''].map((text) => Buffer.from(text)) as [Buffer, Buffer];
  return own.length === other.length && timingSafeEqual(own, other);
}
