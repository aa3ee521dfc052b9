import type { Clock } from '../ports/clock.ts';
import { isUsableId, toLine } from './answers.ts';
import type { BearerSource } from './credential.ts';
import { TookTooLong, withDeadline } from './deadline.ts';
import type { ReadAnswer } from './elements.ts';
import { type CallOptions, ProviderError, type ProviderProblem } from './orchestrator-client.ts';
import { type Answer, type Call, readWhole } from './receive.ts';
import { NotConnected, type OutgoingRequest, type Transport } from './transport.ts';

interface CallerOptions {
  baseUrl: string;
  transport: Transport;
  bearers: BearerSource;
  clock: Clock;
  timeoutMs: number;
  maxBodyBytes: number;
}

export interface Request {
  method: 'GET' | 'POST' | 'DELETE';
  /** The path's segments below the base URL, not encoded. */
  path: readonly string[];
  region?: string | undefined;
  /** Sent as JSON. */
  body?: object;
  idempotencyKey?: string;
  /** The entity tag of the known answer. The server may reply 304. */
  ifNoneMatch?: string | undefined;
}

/** Sends one request and returns a value, or throws one {@link ProviderError} for every failure. */
export class Caller {
  readonly #options: CallerOptions;

  constructor(options: CallerOptions) {
    this.#options = options;
  }

  /** After a 401, sends it once more with a new token: a refused request had no effect. */
  call<T>(request: Request, read: ReadAnswer<T>, { timeoutMs }: CallOptions = {}): Promise<T> {
    const { bearers } = this.#options;
    return this.#bounded(request, timeoutMs, request.method !== 'GET', async (call, send) => {
      const bearer = await bearers.bearer();
      const answer = await send(bearer);
      if (answer.status !== 401 || !bearers.replace(bearer)) return read(call(), answer);
      const other = await bearers.bearer();
      return read(call(), await send(other));
    });
  }

  /** Exchanges a credential. An exchange without an answer leaves nothing to clean up. */
  callWithoutBearer<T>(request: Request, read: ReadAnswer<T>): Promise<T> {
    return this.#bounded(request, undefined, false, async (call, send) => read(call(), await send(null)));
  }

  async #bounded<T>(
    request: Request,
    timeoutMs: number | undefined,
    isWrite: boolean,
    work: (call: () => Call, send: (bearer: string | null) => Promise<Answer>) => Promise<T>,
  ): Promise<T> {
    const { clock, transport, bearers, maxBodyBytes } = this.#options;
    const call = (): Call => ({
      name: toLine(`${request.method} /${request.path.join('/')}`),
      isWrite,
      secrets: bearers.secrets(),
    });
    // Whether a request was sent and its outcome is unknown.
    let isOpen = false;
    try {
      return await withDeadline(clock, timeoutMs ?? this.#options.timeoutMs, (signal) =>
        work(call, async (bearer) => {
          const outgoing = this.#toOutgoing(request, bearer);
          isOpen = true;
          const incoming = await transport.send(outgoing, signal);
          const answer = await readWhole(call(), incoming, maxBodyBytes);
          isOpen = false;
          return answer;
        }),
      );
    } catch (error) {
      throw toProviderError(call(), error, isOpen);
    }
  }

  #toOutgoing(
    { method, path, region, body, idempotencyKey, ifNoneMatch }: Request,
    bearer: string | null,
  ): OutgoingRequest {
    const below = path.map((part) => `/${toSegment(part)}`).join('');
    const query = region === undefined ? '' : `?region=${encodeURIComponent(region)}`;
    return {
      method,
      url: `${this.#options.baseUrl}${below}${query}`,
      headers: {
        accept: 'application/json',
        ...(bearer !== null && { authorization: `Bearer ${bearer}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(idempotencyKey !== undefined && { 'idempotency-key': idempotencyKey }),
        ...(ifNoneMatch !== undefined && { 'if-none-match': ifNoneMatch }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    };
  }
}

/** Refuses what would change the path, such as `..`, or is not encoded exactly. */
function toSegment(part: string): string {
  if (!isUsableId(part))
    throw new ProviderError('invalid', `${toLine(JSON.stringify(part))} cannot be an id of a provider`);
  return encodeURIComponent(part);
}

function toProviderError(call: Call, error: unknown, isOpen: boolean): ProviderError {
  if (error instanceof ProviderError) return error;
  const problem = problemOf(error);
  const reason = toLine((error as Error).message, call.secrets);
  return new ProviderError(problem, `${call.name}: ${reason}`, {
    mayHaveHappened: call.isWrite && isOpen && problem !== 'unreachable',
    cause: error,
  });
}

function problemOf(error: unknown): ProviderProblem {
  if (error instanceof NotConnected) return 'unreachable';
  if (error instanceof TookTooLong) return 'timeout';
  const { name, code } = error as { name?: string; code?: string };
  // The answer was not HTTP, or its headers were too large.
  return name === 'HTTPParserError' || code === 'UND_ERR_HEADERS_OVERFLOW' ? 'invalid' : 'timeout';
}
