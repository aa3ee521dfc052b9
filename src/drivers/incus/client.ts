import type { DestroyOrder } from '../../orchestrator/model/destroy-order.ts';
import type { Call } from '../../orchestrator/model/platform-driver.ts';
import { NotReached } from '../../ports/errors.ts';
import { DEFAULT_CALL_MS } from '../../work/lease-time.ts';
import type { Asking } from '../kit/asking.ts';
import { hasCode, NO_CONNECTION } from '../kit/http-transport.ts';
import { IncusRefusal } from './errors.ts';
import { type Answer, httpTransport, type Tls, type Transport } from './transport.ts';

/** How to reach a daemon, or any member of a cluster. */
export interface Connection {
  /**
   * Addresses such as `unix:/var/lib/incus/unix.socket` or `https://10.0.0.11:8443`. If one does not answer, the next
   * is tried.
   */
  addresses: readonly string[];
  /** PEM. Over HTTPS the client authenticates with it, and the daemon's certificate must equal `serverCertificate`. */
  tls?: Tls;
  /** The Incus project; sent with each request. */
  project: string;
  /** Present under `berth doctor`. */
  asking?: Asking | undefined;
  /**
   * Returns milliseconds since the epoch, on the clock of {@link Call.deadline}. The default is this machine's clock.
   */
  now?: () => number;
  /** Makes the transport for an address. The default is HTTP. */
  transport?: (address: string) => Transport;
}

type Change = 'POST' | 'PUT' | 'PATCH';
type Method = Change | 'GET' | 'DELETE';

export interface Reply {
  metadata: unknown;
  /** Tag of what was read, to send with a replacement. */
  etag: string | undefined;
  /** Id of the background operation that was started. */
  operation: string | undefined;
}

export interface SendOptions {
  body?: unknown;
  /** Text to send in place of a body, and headers that describe it. */
  content?: { text: string; headers: Readonly<Record<string, string>> } | undefined;
  query?: Readonly<Record<string, string>>;
  /** Change only if the resource still has this tag. */
  etag?: string | undefined;
  /** Limits of the change. After its deadline or abort nothing is sent, and pending answers are no longer awaited. */
  call?: Call | undefined;
  /** A time limit below the default, in milliseconds. */
  withinMs?: number | undefined;
}

/** The reason for a removal. An unpacked image is a cache of Incus, and a trial volume has random bytes: no user data. */
export type Removal = { order: DestroyOrder } | { unpackedImage: true } | { trialVolume: true };

/** Time limit of a request; see {@link DEFAULT_CALL_MS}. */
const REQUEST_TIMEOUT_MS = DEFAULT_CALL_MS - 1_000;
/** A read without an answer for this time is sent to the next member too: the first may be down. */
const HEDGE_MS = 1_500;
/** Errors of a connection that was never made, so nothing was sent; the added ones are of a Unix socket. */
const UNSENT = new Set<string>([...NO_CONNECTION, 'ENOENT', 'EACCES']);

interface Target {
  address: string;
  transport: Transport;
}

export class IncusClient {
  readonly project: string;
  /** Whether it uses the socket of a daemon on this machine. */
  readonly isLocal: boolean;
  readonly #targets: Target[];
  readonly #asking: Asking | undefined;
  readonly #now: () => number;

  constructor({ addresses, tls, project, asking, now = Date.now, transport }: Connection) {
    this.project = project;
    this.isLocal = addresses.every((address) => address.startsWith('unix:'));
    this.#asking = asking;
    this.#now = now;
    const to = transport ?? ((address: string) => httpTransport(address, tls, REQUEST_TIMEOUT_MS));
    this.#targets = addresses.map((address) => ({ address, transport: to(address) }));
  }

  get(path: string, query: Readonly<Record<string, string>> = {}, withinMs?: number): Promise<Reply> {
    return this.#request('GET', path, { query, withinMs });
  }

  /**
   * Sends a change. Every change goes through here; a removal carries its order.
   *
   * @throws {NotReached} if nothing was sent
   * @throws {IncusRefusal} if the daemon refused it
   * @throws {Error} if the answer is lost or invalid
   */
  send(method: Change, path: string, options?: SendOptions): Promise<Reply>;
  send(method: 'DELETE', path: string, options: SendOptions & Removal): Promise<Reply>;
  send(method: Change | 'DELETE', path: string, options: SendOptions = {}): Promise<Reply> {
    return this.#request(method, path, options);
  }

  async #request(method: Method, path: string, options: SendOptions): Promise<Reply> {
    const { status, text, etag: found } = await this.#exchange(method, path, options);
    const reply = parse(text, status);
    // Another server, such as a proxy, has answered. Its 404 does not mean that a machine is gone.
    if (status >= 400 && reply.type !== 'error')
      throw new Error(`${status} with an unexpected body: ${text.slice(0, 200)}`);
    if (reply.type === 'error')
      throw new IncusRefusal(reply.error_code || status, String(reply.error), method);
    const operation = reply.type === 'async' ? String(reply.operation).split(/[/?]/)[3] : undefined;
    return { metadata: reply.metadata, etag: found, operation };
  }

  /** Reads an answer that is not JSON: a console log. @throws as `send` */
  async text(path: string): Promise<string> {
    const { status, text } = await this.#exchange('GET', path, {});
    if (status >= 400) throw new IncusRefusal(status, String(parse(text, status).error), 'GET');
    return text;
  }

  /** The daemon's clock, in milliseconds since the epoch. @throws as `send` */
  async date(): Promise<number> {
    const { date } = await this.#exchange('GET', '/1.0', {});
    return Date.parse(date ?? '');
  }

  async close(): Promise<void> {
    await Promise.all(this.#targets.map(({ transport }) => transport.close()));
  }

  /** Sends a request, first to the target that answered last. */
  async #exchange(method: Method, path: string, options: SendOptions): Promise<Answer> {
    const over = new AbortController();
    const withinMs = options.withinMs ?? this.#asking?.withinMs ?? REQUEST_TIMEOUT_MS;
    const timer = setTimeout(() => over.abort(new Error(`no answer within ${withinMs} ms`)), withinMs);
    const ends = [this.#asking?.signal, options.call?.signal].filter((one) => one !== undefined);
    const signal = AbortSignal.any([over.signal, ...ends]);
    const calls = [...this.#targets].map((target) => () => this.#ask(target, method, path, options, signal));
    try {
      return await (method === 'GET' ? hedged(calls, HEDGE_MS) : inTurn(calls));
    } catch (error) {
      const problems = error instanceof AggregateError ? error.errors : [error];
      const lost = problems.find((one) => !(one instanceof NotReached));
      if (lost !== undefined) throw lost;
      throw new NotReached(`no Incus answers (${problems.map(({ message }) => message).join('; ')})`);
    } finally {
      clearTimeout(timer);
      over.abort();
    }
  }

  /** @throws {NotReached} if the request was not sent, or is a read */
  async #ask(
    target: Target,
    method: Method,
    path: string,
    options: SendOptions,
    signal: AbortSignal,
  ): Promise<Answer> {
    if (this.#isOver(options.call)) throw new NotReached('the call is over, and nothing was sent');
    try {
      return await this.#send(target, method, path, options, signal);
    } catch (error) {
      const problem = `${target.address}: ${reasonOf(error)}`;
      if (method === 'GET' || hasCode(error, UNSENT)) throw new NotReached(problem);
      throw new Error(`the answer of Incus was lost (${problem})`, { cause: error });
    }
  }

  async #send(
    target: Target,
    method: Method,
    path: string,
    { body, content, query = {}, etag }: SendOptions,
    signal: AbortSignal,
  ): Promise<Answer> {
    const answer = await target.transport.send({
      method,
      path,
      // Incus refuses a request with both parameters.
      query: 'all-projects' in query ? query : { project: this.project, ...query },
      headers: {
        'User-Agent': 'berth',
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
        ...(content !== undefined && { 'Content-Type': 'application/octet-stream', ...content.headers }),
        ...(etag !== undefined && { 'If-Match': etag }),
      },
      body: body === undefined ? content?.text : JSON.stringify(body),
      signal,
    });
    this.#prefer(target);
    return answer;
  }

  #isOver(call: Call | undefined): boolean {
    return call !== undefined && (call.signal.aborted || this.#now() >= call.deadline);
  }

  #prefer(target: Target): void {
    const index = this.#targets.indexOf(target);
    if (index > 0) this.#targets.unshift(...this.#targets.splice(index, 1));
  }
}

/**
 * Sends a change to the next target only if nothing was sent to the previous one.
 *
 * @throws {AggregateError} of all problems
 */
async function inTurn<T>(calls: readonly (() => Promise<T>)[]): Promise<T> {
  const problems: unknown[] = [];
  for (const call of calls) {
    try {
      return await call();
    } catch (error) {
      problems.push(error);
      if (!(error instanceof NotReached)) break;
    }
  }
  throw new AggregateError(problems);
}

interface Envelope {
  type?: unknown;
  metadata?: unknown;
  operation?: unknown;
  error?: unknown;
  error_code?: number;
}

function parse(text: string, status: number): Envelope {
  try {
    const envelope: unknown = JSON.parse(text);
    if (typeof envelope === 'object' && envelope !== null) return envelope;
  } catch {}
  throw new Error(`Incus answers ${status} with a body that is not JSON: ${text.slice(0, 200)}`);
}

function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return reasonOf(error.errors[0]);
  return error instanceof Error ? error.message : String(error);
}

/**
 * Starts the calls one after another: the next when the previous one fails or takes longer than `pauseMs`. Returns
 * the first answer.
 *
 * @throws {AggregateError} of all problems, in order, if every call fails
 */
export async function hedged<T>(calls: readonly (() => Promise<T>)[], pauseMs: number): Promise<T> {
  const begun: Promise<T>[] = [];
  for (const call of calls) {
    const last = call();
    begun.push(last);
    const { promise: silence, resolve } = Promise.withResolvers<boolean>();
    const timer = setTimeout(() => resolve(false), pauseMs);
    const isAnswered = await Promise.race([
      Promise.any(begun).then(() => true),
      last.then(
        () => true,
        () => false,
      ),
      silence,
    ]).catch(() => false);
    clearTimeout(timer);
    if (isAnswered) break;
  }
  return Promise.any(begun);
}
