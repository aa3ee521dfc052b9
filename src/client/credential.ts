import type { Clock } from '../ports/clock.ts';

/** A long-lived key, or credentials that are exchanged for short-lived tokens (O: Authentication). */
export type Credential =
  | { apiKey: string }
  | { exchange: { api_key: string } | { username: string; password: string } };

/** Provides the token for `Authorization: Bearer`. */
export interface BearerSource {
  bearer(): Promise<string>;
  /** Whether a new token can replace the refused one. */
  replace(refused: string): boolean;
  /** Values that must not appear in messages or logs. */
  secrets(): string[];
}

export interface Token {
  accessToken: string;
  expiresInMs: number;
}

/** A token is renewed at this share of its lifetime. */
const RENEW_AT = 0.8;

/** @throws {Error} for a key that does not fit into a header */
export function createBearerSource(
  credential: Credential,
  clock: Clock,
  exchange: () => Promise<Token>,
): BearerSource {
  if ('exchange' in credential) return new ExchangedBearer(credential.exchange, clock, exchange);
  const { apiKey } = credential;
  if (!/^[\x21-\x7e]+$/.test(apiKey))
    throw new Error('expected an API key of visible ASCII characters without spaces');
  return { bearer: async () => apiKey, replace: () => false, secrets: () => [apiKey] };
}

class ExchangedBearer implements BearerSource {
  readonly #request: object;
  readonly #clock: Clock;
  readonly #exchange: () => Promise<Token>;
  #token: { value: string; renewAt: number; expiresAt: number } | null = null;
  #renewal: Promise<string> | null = null;

  constructor(request: object, clock: Clock, exchange: () => Promise<Token>) {
    this.#request = request;
    this.#clock = clock;
    this.#exchange = exchange;
  }

  async bearer(): Promise<string> {
    const token = this.#token;
    const now = this.#clock.now();
    if (token !== null && now < token.renewAt) return token.value;
    this.#renewal ??= this.#renew().finally(() => {
      this.#renewal = null;
    });
    if (token === null || now >= token.expiresAt) return this.#renewal;
    // The old token is still valid. Calls do not wait for the renewal, and its failure does not matter yet.
    this.#renewal.catch(() => undefined);
    return token.value;
  }

  replace(refused: string): boolean {
    if (this.#token?.value === refused) this.#token = null;
    return true;
  }

  secrets(): string[] {
    const { username: _, ...secret } = this.#request as Record<string, string>;
    return [...Object.values(secret), ...(this.#token === null ? [] : [this.#token.value])];
  }

  async #renew(): Promise<string> {
    const askedAt = this.#clock.now();
    const { accessToken: value, expiresInMs } = await this.#exchange();
    this.#token = { value, renewAt: askedAt + expiresInMs * RENEW_AT, expiresAt: askedAt + expiresInMs };
    return value;
  }
}
