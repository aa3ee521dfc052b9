import { randomUUID } from 'node:crypto';
import { asksForInstances, TOKEN_PATH } from '../contract/paths.ts';
import type { Credential, Exchange } from '../transcript/records.ts';
import type { Transcript } from '../transcript/transcript.ts';
import { type Call, isNearMemoryLimit, maxBodyBytes, timeoutMs } from './call.ts';
import type { Clock } from './clock.ts';
import type { Identity } from './identity.ts';
import { OwnInstances } from './own-instances.ts';
import { Reachability } from './reachability.ts';
import { ATTEMPTS_WHEN_LIMITED, ATTEMPTS_WHEN_LOST, ReplacedReads } from './replaced-reads.ts';
import { ResponseSecrets } from './response-secrets.ts';
import { AccessToken, lastUseOf, type SignIn, type TokenRequest } from './sign-in.ts';
import type { HttpAnswer, HttpFailure, Transport } from './transport.ts';

const LONGEST_RETRY_AFTER_MS = 60_000;

export interface TargetClientOptions extends SignIn {
  transport: Transport;
  clock: Clock;
  transcript: Transcript;
  /** Without a trailing slash. */
  baseUrl: string;
  identity: Identity;
  /** The `X-Request-Id` of the nth request, if the identity sends one; default: a random UUID. */
  requestId?: (n: number) => string;
  secondApiKey?: string | undefined;
  otherAccountKey?: string | undefined;
  /** The minimum time between two requests, except concurrent ones. */
  paceMs: number;
  /** False: a GET that was lost or limited is not repeated, since the next poll replaces it; default: true. */
  repeatsReads?: boolean;
  /** Called with a secret in the target's answer, before any part of the answer is written. */
  onSecret: (name: string, secret: string) => void;
  /** Called when the target has accepted no connection for some seconds. Without it, such a request just fails. */
  onSilence?: (text: string) => void;
}

/** Sends all requests to the target as its client would, and records each exchange in the transcript. */
export class TargetClient {
  readonly #parts: TargetClientOptions;
  readonly #startedAt: number;
  readonly #own: OwnInstances;
  readonly #secrets: ResponseSecrets;
  readonly #reachability: Reachability | undefined;
  #sent = 0;
  readonly #replacedReads: ReplacedReads;
  #bytesKept = 0;
  #lastSentAt = Number.NEGATIVE_INFINITY;
  #accessToken: AccessToken | undefined;
  #lastUse: ReturnType<typeof lastUseOf>;
  /** The request that yielded the token. */
  #signedInWith: TokenRequest = {};
  #usual: Credential;

  constructor(parts: TargetClientOptions) {
    this.#parts = parts;
    this.#startedAt = parts.clock.now();
    this.#own = new OwnInstances((name) => parts.identity.isOwn(name));
    this.#secrets = new ResponseSecrets(parts.onSecret);
    this.#replacedReads = new ReplacedReads(parts.repeatsReads !== false);
    this.#usual = parts.apiKey === undefined ? 'access token' : 'api key';
    this.#reachability = parts.onSilence && new Reachability(parts.clock, parts.onSilence);
  }

  /** Whether the run has given up on a target that accepts no connections. */
  get isLost(): boolean {
    return this.#reachability?.isLost === true;
  }

  /** Milliseconds since the run's start. */
  now(): number {
    return this.#parts.clock.now() - this.#startedAt;
  }

  /** Requests an access token, uses it for the credential `access token`, and renews it before it expires. */
  async requestAccessToken(step: string, request: TokenRequest, signal?: AbortSignal): Promise<Exchange> {
    const exchange = await this.send(step, this.tokenCall(request), signal);
    this.#accessToken = AccessToken.of(exchange);
    this.#lastUse = lastUseOf(exchange);
    this.#signedInWith = request;
    return exchange;
  }

  get hasAccessToken(): boolean {
    return this.#accessToken !== undefined;
  }

  /** The request for a token; its only credential is in the body. */
  tokenCall(request: TokenRequest): Call {
    return { method: 'POST', path: TOKEN_PATH, body: request, credential: 'none' };
  }

  /** Makes requests without an explicit credential carry the access token from now on. */
  preferAccessToken(): void {
    this.#usual = 'access token';
  }

  /** The bearer value of the run's usual credential. A secret. */
  get usualBearer(): string {
    const token = this.#usual === 'access token' ? this.#accessToken?.value : undefined;
    return token ?? this.#parts.apiKey ?? '';
  }

  /** Redacts `secret` from now on. A credential could be derived from it. */
  keepSecret(name: string, secret: string): void {
    this.#parts.onSecret(name, secret);
  }

  /**
   * Sends one request and returns its exchange, even if it failed. Retries after a 429, a lost GET, and while the
   * target accepts no connections; replaced exchanges are recorded as `superseded`. Rejects only with the signal's
   * reason or, after a minute without a connection, with `TargetLost`. Once `patience` is aborted, a 429 is returned.
   */
  async send(step: string, call: Call, signal?: AbortSignal, patience?: AbortSignal): Promise<Exchange> {
    await this.#renewToken(call, signal);
    for (let attempt = 1; ; attempt++) {
      if (call.isAtOnce !== true) await this.#keepPace(signal);
      // Only a GET may be interrupted: any other request could take effect unnoticed.
      const exchange = await this.#exchange(step, call, call.method === 'GET' ? signal : undefined);
      this.#throwIfAborted(exchange, signal);
      if (await this.#isRepeated(exchange, patience ?? signal)) {
        attempt--;
        continue;
      }
      if (this.#replacedReads.has(call, exchange)) return this.#record({ ...exchange, superseded: true });
      const waitMs = this.#waitBeforeAnother(exchange, attempt);
      if (waitMs === undefined || patience?.aborted) return this.#record(exchange);
      if (patience !== undefined) {
        if (!(await this.#sleptToEnd(waitMs, patience))) return this.#record(exchange);
        this.#record({ ...exchange, superseded: true });
        continue;
      }
      this.#record({ ...exchange, superseded: true });
      await this.#parts.clock.sleep(waitMs, signal);
    }
  }

  /** Reads at the same moment. Each read is repeated as `send` does. */
  async getTogether(step: string, paths: readonly string[], signal?: AbortSignal): Promise<Exchange[]> {
    const calls = paths.map((path): Call => ({ method: 'GET', path, isAtOnce: true }));
    if (calls[0] !== undefined) await this.#renewToken(calls[0], signal);
    await this.#keepPace(signal);
    return Promise.all(calls.map((call) => this.send(step, call, signal)));
  }

  /**
   * Sends requests at the same moment. Those answered 429 are sent again together: a rate limit is lawful and says
   * nothing about the request. Once `patience` is aborted, a 429 is returned instead of retried.
   */
  async sendTogether(
    calls: readonly { step: string; call: Call }[],
    patience?: AbortSignal,
  ): Promise<Exchange[]> {
    for (const { call } of calls) await this.#renewToken(call);
    const last: Exchange[] = [];
    let open = [...calls.entries()];
    for (let attempt = 1; ; attempt++) {
      const round = await Promise.all(
        open.map(async ([index, { step, call }]) => ({ index, exchange: await this.#exchange(step, call) })),
      );
      const limited = new Map<number, number>();
      for (const { index, exchange } of round) {
        const waitMs = this.#waitWhenLimited(exchange, attempt);
        if (waitMs === undefined) last[index] = this.#record(exchange);
        else limited.set(index, waitMs);
      }
      if (limited.size === 0) return last;
      const goesOn = await this.#sleptToEnd(Math.max(...limited.values()), patience);
      for (const { index, exchange } of round)
        if (limited.has(index))
          last[index] = this.#record(goesOn ? { ...exchange, superseded: true } : exchange);
      if (!goesOn) return last;
      open = open.filter(([index]) => limited.has(index));
    }
  }

  /** If the target accepted no connection, waits, and records the exchange as superseded. */
  async #isRepeated(exchange: Exchange, signal: AbortSignal | undefined): Promise<boolean> {
    if (this.#reachability === undefined) return false;
    try {
      const isRepeated = await this.#reachability.waitAfter(exchange, signal);
      if (isRepeated) this.#record({ ...exchange, superseded: true });
      return isRepeated;
    } catch (error) {
      this.#record({ ...exchange, superseded: true });
      throw error;
    }
  }

  /** Sleeps. False if `patience` was aborted first. */
  async #sleptToEnd(ms: number, patience: AbortSignal | undefined): Promise<boolean> {
    try {
      await this.#parts.clock.sleep(ms, patience);
      return patience?.aborted !== true;
    } catch (error) {
      if (patience?.aborted) return false;
      throw error;
    }
  }

  async #renewToken(call: Call, signal?: AbortSignal): Promise<void> {
    // No marketplace uses a token that late: a run that passes for one leaves it out.
    if (this.#parts.repeatsReads === false) this.#lastUse = undefined;
    await this.#useTokenBeforeItsEnd(signal);
    const token = this.#accessToken;
    if (this.#lastUse !== undefined) return;
    if (token === undefined || this.#credentialOf(call) !== 'access token' || !token.isDue(this.now()))
      return;
    const exchange = await this.#exchange('token/renew', this.tokenCall(this.#signedInWith), signal);
    this.#throwIfAborted(exchange, signal);
    token.renew(this.#record(exchange));
    this.#lastUse = lastUseOf(exchange);
  }

  /** Uses a token once more before it is renewed, if a request is sent shortly before its end. */
  async #useTokenBeforeItsEnd(signal?: AbortSignal): Promise<void> {
    const use = this.#lastUse;
    const now = this.now();
    if (use === undefined || (now < use.from && now <= use.until)) return;
    this.#lastUse = undefined;
    if (now > use.until) return;
    const call: Call = { method: 'GET', path: '/configurations', credential: 'access token' };
    const exchange = await this.#exchange('token/before-end', call, signal);
    this.#record({ ...exchange, ...(exchange.answer === undefined && { superseded: true }) });
  }

  /** Records the interrupted request and throws the reason. A request without an answer is not judged. */
  #throwIfAborted(exchange: Exchange, signal: AbortSignal | undefined): void {
    if (!signal?.aborted) return;
    this.#record(exchange.answer === undefined ? { ...exchange, superseded: true } : exchange);
    signal.throwIfAborted();
  }

  #record(exchange: Exchange): Exchange {
    this.#parts.transcript.add(exchange);
    return exchange;
  }

  async #keepPace(signal: AbortSignal | undefined): Promise<void> {
    const early = this.#lastSentAt + this.#parts.paceMs - this.#parts.clock.now();
    if (early > 0) await this.#parts.clock.sleep(early, signal);
    this.#lastSentAt = this.#parts.clock.now();
  }

  async #exchange(step: string, call: Call, signal?: AbortSignal): Promise<Exchange> {
    const { clock, transport, baseUrl, identity } = this.#parts;
    const n = ++this.#sent;
    const requestId = identity.sendsRequestIds ? (this.#parts.requestId?.(n) ?? randomUUID()) : '';
    const headers = identity.headers({ call, step, requestId, authorization: this.#authorization(call) });
    const body =
      call.body === undefined || typeof call.body === 'string' ? call.body : JSON.stringify(call.body);
    const sentAt = this.now();
    const wall = new Date(clock.wall()).toISOString();
    const result = await transport.send(
      {
        method: call.method,
        url: `${baseUrl}${call.path}`,
        headers,
        ...(body !== undefined && { body }),
      },
      {
        timeoutMs: timeoutMs(call),
        maxBodyBytes: maxBodyBytes(call, this.#bytesKept),
        ...(signal !== undefined && { signal }),
      },
    );
    return {
      kind: 'exchange',
      n,
      step,
      sentAt,
      endedAt: this.now(),
      wall,
      requestId,
      ...(result.tlsKey !== undefined && { tlsKey: result.tlsKey }),
      credential: this.#credentialOf(call),
      request: { method: call.method, path: call.path, headers, ...(body !== undefined && { body }) },
      ...this.#outcomeOf(call, result),
    };
  }

  #outcomeOf(call: Call, result: HttpAnswer | HttpFailure): Pick<Exchange, 'answer' | 'failure'> {
    if ('failure' in result) return { failure: { kind: result.failure, message: result.message } };
    const { status, firstByteMs } = result;
    const headers = this.#secrets.keep(call.path, result);
    if (call.method === 'POST' && call.path === '/instances') this.#own.add(result.body);
    const { body, leftOut } = asksForInstances(call)
      ? this.#own.trimmed(result.body, {
          isRefused: status >= 300,
          isNearMemoryLimit: isNearMemoryLimit(this.#bytesKept),
          ...(call.keeps && { keeps: call.keeps }),
        })
      : { body: result.body, leftOut: 0 };
    this.#bytesKept += body.length;
    return { answer: { status, headers, body, firstByteMs, ...(leftOut > 0 && { leftOut }) } };
  }

  #authorization(call: Call): string | undefined {
    switch (this.#credentialOf(call)) {
      case 'api key':
        return `Bearer ${this.#parts.apiKey}`;
      case 'second api key':
        return `Bearer ${this.#parts.secondApiKey}`;
      case 'other account key':
        return `Bearer ${this.#parts.otherAccountKey}`;
      case 'access token':
        return this.#accessToken && `Bearer ${this.#accessToken.value}`;
      case 'altered':
        return call.authorization;
      case 'none':
        return undefined;
    }
  }

  #credentialOf({ credential }: Call): Credential {
    return credential ?? this.#usual;
  }

  #waitBeforeAnother(exchange: Exchange, attempt: number): number | undefined {
    const limitedMs = this.#waitWhenLimited(exchange, attempt);
    if (limitedMs !== undefined) return limitedMs;
    const isLost =
      exchange.failure !== undefined &&
      exchange.failure.kind !== 'too_large' &&
      this.#parts.repeatsReads !== false;
    if (isLost && exchange.request.method === 'GET' && attempt < ATTEMPTS_WHEN_LOST)
      return this.#parts.paceMs;
    return undefined;
  }

  #waitWhenLimited({ answer, request }: Exchange, attempt: number): number | undefined {
    if (this.#parts.repeatsReads === false && request.method === 'GET') return undefined;
    return answer?.status === 429 && attempt < ATTEMPTS_WHEN_LIMITED
      ? retryAfterMs(answer.headers['retry-after'], this.#parts.clock.wall(), attempt)
      : undefined;
  }
}

/** `Retry-After` in seconds or as a date. If it is missing or unreadable: 1, 2, 4 … seconds by attempt. */
export function retryAfterMs(header: string | undefined, wallMs: number, attempt: number): number {
  const seconds = Number(header?.trim() || Number.NaN);
  const dateMs = Date.parse(header ?? '');
  const usualMs = 1000 * 2 ** (attempt - 1);
  const ms = Number.isFinite(seconds) ? seconds * 1000 : Number.isFinite(dateMs) ? dateMs - wallMs : usualMs;
  return Math.min(Math.max(ms, 100), LONGEST_RETRY_AFTER_MS);
}

/** A hundredth of the poll interval: about ten requests a second at the contract's rate. */
export function paceOf(pollIntervalMs: number): number {
  return Math.min(pollIntervalMs / 100, 100);
}
