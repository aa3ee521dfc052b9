import type { Exchange } from '../transcript/records.ts';
import { numberField, successOf, textField } from './json.ts';

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
