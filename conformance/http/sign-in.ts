import { numberField, stringField } from '../text/json.ts';
import { successOf } from '../transcript/exchange.ts';
import type { Exchange, TranscriptRecord } from '../transcript/records.ts';

/** A user name and a password that the target exchanges for an access token (O: Authentication 3, 5). */
export interface Login {
  username: string;
  password: string;
}

/** The credentials of a run: an API key, a login or both. */
export interface SignIn {
  apiKey?: string | undefined;
  login?: Login | undefined;
}

/** The body of POST /auth/token. The contract does not say which fields belong together. */
export interface TokenRequest {
  api_key?: string;
  username?: string;
  password?: string;
}

/** The possible token requests, in the order in which they are tried. */
export function tokenRequests({ apiKey, login }: SignIn): TokenRequest[] {
  return [
    ...(apiKey === undefined ? [] : [{ api_key: apiKey }]),
    ...(login === undefined ? [] : [{ ...login }]),
  ];
}

/**
 * Removes the user name from a record of the token endpoint, the only one that receives it. It may be an ordinary
 * word, so it is not redacted elsewhere.
 */
export function withoutUsername(record: TranscriptRecord, login: Login | undefined): TranscriptRecord {
  if (login === undefined || record.kind !== 'exchange' || record.request.path !== '/auth/token')
    return record;
  const hide = (text: string): string =>
    text.replaceAll(JSON.stringify(login.username).slice(1, -1), '[redacted: username]');
  const hideIn = (headers: Readonly<Record<string, string>>): Record<string, string> =>
    Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, hide(value)]));
  const { request, answer } = record;
  return {
    ...record,
    request: { ...request, ...(request.body !== undefined && { body: hide(request.body) }) },
    ...(answer && { answer: { ...answer, headers: hideIn(answer.headers), body: hide(answer.body) } }),
  };
}

/** A token is renewed after this share of its lifetime. */
const USED_SHARE = 0.75;
const RETRY_AFTER_MS = 5_000;

/** A bearer token that is renewed before it expires (O: Authentication 3). */
export class AccessToken {
  #value: string;
  #renewAt: number;

  private constructor(value: string, renewAt: number) {
    this.#value = value;
    this.#renewAt = renewAt;
  }

  /** The token in an answer of POST /auth/token. Undefined if there is none. */
  static of(exchange: Exchange): AccessToken | undefined {
    const value = stringField(successOf(exchange), 'access_token');
    if (value === undefined || value === '') return undefined;
    return new AccessToken(value, renewalTimeOf(exchange));
  }

  get value(): string {
    return this.#value;
  }

  /** `now` is in milliseconds since the start of the run, like the times of an exchange. */
  isDue(now: number): boolean {
    return now >= this.#renewAt;
  }

  /** Takes the answer to a renewal. Without a token in it, the old one is kept and the renewal is retried later. */
  renew(exchange: Exchange): void {
    const next = AccessToken.of(exchange);
    this.#value = next?.value ?? this.#value;
    this.#renewAt = next === undefined ? exchange.endedAt + RETRY_AFTER_MS : renewalTimeOf(exchange);
  }
}

/**
 * When the token in an answer of POST /auth/token is used once more, on the clock of the run: after 80 to 97 % of its life.
 * Undefined if it never ends.
 */
export function lastUseOf(exchange: Exchange): { from: number; until: number } | undefined {
  const lifeMs = (numberField(successOf(exchange), 'expires_in') ?? 0) * 1000;
  if (lifeMs <= 0) return undefined;
  // The end may be rounded to whole seconds.
  const usedMs = Math.min(lifeMs * 0.97, lifeMs - 2000);
  return { from: exchange.sentAt + lifeMs * 0.8, until: exchange.sentAt + usedMs };
}

function renewalTimeOf(exchange: Exchange): number {
  const seconds = numberField(successOf(exchange), 'expires_in') ?? Number.NaN;
  return seconds > 0 ? exchange.sentAt + seconds * 1000 * USED_SHARE : Number.POSITIVE_INFINITY;
}
