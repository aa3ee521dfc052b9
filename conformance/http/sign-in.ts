import { numberField, textField } from '../text/json.ts';
import { successOf } from '../transcript/exchange.ts';
import type { Exchange, TranscriptRecord } from '../transcript/records.ts';

/** A user name and a password, for which a target gives an access token (O: Authentication 3, 5). */
export interface Login {
  username: string;
  password: string;
}

/** With what a run gets in: an API key, a login or both. */
export interface SignIn {
  apiKey?: string | undefined;
  login?: Login | undefined;
}

/** The body of POST /auth/token. Which of its fields belong together is not shown in O:. */
export interface TokenRequest {
  api_key?: string;
  username?: string;
  password?: string;
}

/** With what an access token can be asked for, in the order in which it is tried. */
export function tokenRequests({ apiKey, login }: SignIn): TokenRequest[] {
  return [
    ...(apiKey === undefined ? [] : [{ api_key: apiKey }]),
    ...(login === undefined ? [] : [{ ...login }]),
  ];
}

/** A user name is told to the token endpoint alone. It may be a word like any other, so that it is taken out there only. */
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

/** Of its life, how much of a token is used before another is asked for. */
const USED_SHARE = 0.75;
const RETRY_AFTER_MS = 5_000;

/** A bearer credential that ends, and is asked for anew before it does (O: Authentication 3). */
export class AccessToken {
  #value: string;
  #renewAt: number;

  private constructor(value: string, renewAt: number) {
    this.#value = value;
    this.#renewAt = renewAt;
  }

  /** That of an answer of POST /auth/token; undefined where it holds none. */
  static of(exchange: Exchange): AccessToken | undefined {
    const value = textField(successOf(exchange), 'access_token');
    if (value === undefined || value === '') return undefined;
    return new AccessToken(value, renewalTimeOf(exchange));
  }

  get value(): string {
    return this.#value;
  }

  /** `now` is in milliseconds since the run's start, as in the exchange that it came with. */
  isDue(now: number): boolean {
    return now >= this.#renewAt;
  }

  /** Takes the answer to the request for another. Where that holds none, this one is kept and the request made again later. */
  renew(exchange: Exchange): void {
    const next = AccessToken.of(exchange);
    this.#value = next?.value ?? this.#value;
    this.#renewAt = next === undefined ? exchange.endedAt + RETRY_AFTER_MS : renewalTimeOf(exchange);
  }
}

function renewalTimeOf(exchange: Exchange): number {
  const seconds = numberField(successOf(exchange), 'expires_in') ?? Number.NaN;
  return seconds > 0 ? exchange.sentAt + seconds * 1000 * USED_SHARE : Number.POSITIVE_INFINITY;
}
