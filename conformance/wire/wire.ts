import { randomUUID } from 'node:crypto';
import type { Credential, Exchange } from '../transcript/records.ts';
import type { Transcript } from '../transcript/transcript.ts';
import { AccessToken } from './access-token.ts';
import type { Clock } from './clock.ts';
import { parseJson, textField } from './json.ts';
import type { HttpAnswer, HttpFailure, Transport } from './transport.ts';

/** The longest answer that is read. A catalogue or a list of some ten thousand instances fits. */
const MAX_BODY_BYTES = 16 * 1024 * 1024;
/** All answers are kept until the run is judged. Once this much has come, only small ones are read. */
const MAX_BYTES_IN_ALL = 96 * 1024 * 1024;
const SMALL_BODY_BYTES = 64 * 1024;
const ATTEMPTS_WHEN_LIMITED = 5;
const LONGEST_RETRY_AFTER_MS = 60_000;
const ATTEMPTS_WHEN_LOST = 3;
const TOKEN_PATH = '/auth/token';

export interface Call {
  method: 'GET' | 'POST' | 'DELETE' | 'PUT' | 'PATCH';
  /** Below the base URL. */
  path: string;
  /** Sent as JSON; a string is sent as it is. */
  body?: unknown;
  /** The run's usual one when absent: `api key`, or `access token` for a target that takes no other. */
  credential?: Credential;
  /** The Authorization header, where the credential is `altered`. */
  authorization?: string;
  /** `application/json` when absent. Goes with a body only. */
  contentType?: string;
}

export interface WireParts {
  transport: Transport;
  clock: Clock;
  transcript: Transcript;
  /** Without a slash at its end. */
  baseUrl: string;
  userAgent: string;
  apiKey: string;
  secondApiKey?: string | undefined;
  /** The least time between two requests, except those that are meant to be concurrent. */
  paceMs: number;
  requestTimeoutMs: number;
  /** Told of a secret that the target handed out, before anything of it is written. */
  onSecret: (name: string, secret: string) => void;
}

/** The one way to the target: sends a request as its client would, and puts what came of it in the transcript. */
export class Wire {
  readonly #parts: WireParts;
  readonly #startedAt: number;
  #sent = 0;
  #bytesRead = 0;
  #lastSentAt = Number.NEGATIVE_INFINITY;
  #accessToken: AccessToken | undefined;
  #usual: Credential = 'api key';

  constructor(parts: WireParts) {
    this.#parts = parts;
    this.#startedAt = parts.clock.now();
  }

  /** Milliseconds since the run's start. */
  now(): number {
    return this.#parts.clock.now() - this.#startedAt;
  }

  get startedAt(): number {
    return this.#startedAt;
  }

  /**
   * Asks for an access token for the API key. From then on `access token` is that credential, and is renewed before it
   * ends.
   */
  async requestAccessToken(step: string, signal?: AbortSignal): Promise<Exchange> {
    const exchange = await this.send(step, this.tokenCall(this.#parts.apiKey), signal);
    this.#accessToken = AccessToken.of(exchange);
    return exchange;
  }

  get hasAccessToken(): boolean {
    return this.#accessToken !== undefined;
  }

  /** The request for a token. It carries no credential but in its body. */
  tokenCall(apiKey: string): Call {
    return { method: 'POST', path: TOKEN_PATH, body: { api_key: apiKey }, credential: 'none' };
  }

  /** From now on requests that name no credential go out with the access token. */
  preferAccessToken(): void {
    this.#usual = 'access token';
  }

  /** What the run's usual credential says after `Bearer`. A secret. */
  get usualBearer(): string {
    return (this.#usual === 'access token' ? this.#accessToken?.value : undefined) ?? this.#parts.apiKey;
  }

  /** From now on `secret` is taken out of all that is written: something from which a credential can be told. */
  keepSecret(name: string, secret: string): void {
    this.#parts.onSecret(name, secret);
  }

  /**
   * Sends one request and returns its exchange, whatever came of it. A 429 is waited out and sent again; a GET that was
   * lost on the way is sent again; the exchanges that were so replaced are in the transcript too, as `superseded`.
   * Rejects with the signal's reason only.
   */
  async send(step: string, call: Call, signal?: AbortSignal): Promise<Exchange> {
    await this.#renewToken(call, signal);
    for (let attempt = 1; ; attempt++) {
      await this.#keepPace(signal);
      const exchange = await this.#exchange(step, call, signal);
      signal?.throwIfAborted();
      const waitMs = this.#waitBeforeAnother(exchange, attempt);
      if (waitMs === undefined) return this.#record(exchange);
      this.#record({ ...exchange, superseded: true });
      await this.#parts.clock.sleep(waitMs, signal);
    }
  }

  /** Sends requests at the same moment. None is repeated. */
  async sendTogether(calls: readonly { step: string; call: Call }[]): Promise<Exchange[]> {
    for (const { call } of calls) await this.#renewToken(call);
    const exchanges = await Promise.all(calls.map(({ step, call }) => this.#exchange(step, call)));
    return exchanges.map((exchange) => this.#record(exchange));
  }

  async #renewToken(call: Call, signal?: AbortSignal): Promise<void> {
    const token = this.#accessToken;
    if (token === undefined || this.#credentialOf(call) !== 'access token' || !token.isDue(this.now()))
      return;
    const exchange = await this.#exchange('token/renew', this.tokenCall(this.#parts.apiKey), signal);
    signal?.throwIfAborted();
    token.renew(this.#record(exchange));
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
    const { clock, transport, baseUrl, requestTimeoutMs } = this.#parts;
    const n = ++this.#sent;
    const requestId = randomUUID();
    const headers = this.#headers(step, call, requestId);
    const body =
      call.body === undefined || typeof call.body === 'string' ? call.body : JSON.stringify(call.body);
    const sentAt = this.now();
    const wall = new Date(clock.wall()).toISOString();
    const result = await transport.send(
      {
        method: call.method,
        url: `${baseUrl}${call.path}`,
        headers,
        ...(body === undefined ? {} : { body }),
      },
      {
        timeoutMs: requestTimeoutMs,
        maxBodyBytes: this.#maxBodyBytes,
        ...(signal === undefined ? {} : { signal }),
      },
    );
    if ('body' in result) this.#bytesRead += result.body.length;
    this.#keepSecret(call, result);
    return {
      kind: 'exchange',
      n,
      step,
      sentAt,
      endedAt: this.now(),
      wall,
      requestId,
      credential: this.#credentialOf(call),
      request: { method: call.method, path: call.path, headers, ...(body === undefined ? {} : { body }) },
      ...outcomeOf(result),
    };
  }

  get #maxBodyBytes(): number {
    return this.#bytesRead < MAX_BYTES_IN_ALL ? MAX_BODY_BYTES : SMALL_BODY_BYTES;
  }

  /** A token is a secret before anything of its answer is written. */
  #keepSecret({ path }: Call, result: HttpAnswer | HttpFailure): void {
    if (path !== TOKEN_PATH || 'failure' in result) return;
    const token = textField(parseJson(result.body), 'access_token');
    if (token !== undefined) this.#parts.onSecret('access token', token);
  }

  #headers(step: string, call: Call, requestId: string): Record<string, string> {
    const authorization = this.#authorization(call);
    return {
      accept: 'application/json',
      'user-agent': `${this.#parts.userAgent} ${step}`,
      'x-request-id': requestId,
      ...(authorization === undefined ? {} : { authorization }),
      ...(call.body === undefined ? {} : { 'content-type': call.contentType ?? 'application/json' }),
    };
  }

  #authorization(call: Call): string | undefined {
    switch (this.#credentialOf(call)) {
      case 'api key':
        return `Bearer ${this.#parts.apiKey}`;
      case 'second api key':
        return `Bearer ${this.#parts.secondApiKey}`;
      case 'access token':
        return `Bearer ${this.#accessToken?.value}`;
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
    if (exchange.answer?.status === 429 && attempt < ATTEMPTS_WHEN_LIMITED)
      return retryAfterMs(exchange.answer.headers['retry-after'], this.#parts.clock.wall());
    const isLost = exchange.failure !== undefined && exchange.failure.kind !== 'too_large';
    if (isLost && exchange.request.method === 'GET' && attempt < ATTEMPTS_WHEN_LOST)
      return this.#parts.paceMs;
    return undefined;
  }
}

function outcomeOf(result: HttpAnswer | HttpFailure): Pick<Exchange, 'answer' | 'failure'> {
  if ('failure' in result) return { failure: { kind: result.failure, message: result.message } };
  const { status, headers, body, firstByteMs } = result;
  return { answer: { status, headers, body, firstByteMs } };
}

/** `Retry-After` as seconds or as a date; one second where it is absent or unreadable. */
export function retryAfterMs(header: string | undefined, wallMs: number): number {
  const seconds = Number(header?.trim() || Number.NaN);
  const dateMs = Date.parse(header ?? '');
  const ms = Number.isFinite(seconds) ? seconds * 1000 : Number.isFinite(dateMs) ? dateMs - wallMs : 1000;
  return Math.min(Math.max(ms, 100), LONGEST_RETRY_AFTER_MS);
}
