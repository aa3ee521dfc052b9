import type { DestroyOrder } from '../../orchestrator/model/destroy-order.ts';
import type { Call } from '../../orchestrator/model/platform-driver.ts';
import type { Asking } from '../kit/asking.ts';
import { IncusRefusal, NotReached } from './errors.ts';
import { hedged } from './hedged.ts';
import { type Answer, httpTransport, type Tls, type Transport } from './transport.ts';

/** How a daemon, or any member of a cluster, is reached. */
export interface Connection {
  /** `unix:/var/lib/incus/unix.socket` or `https://10.0.0.11:8443`; the next one is tried where one does not answer. */
  addresses: readonly string[];
  /** PEM. Over HTTPS the client proves itself with it, and the daemon must have exactly `serverCertificate`. */
  tls?: Tls;
  /** Incus' own; each request names it. */
  project: string;
  /** Where `berth doctor` asks. */
  asking?: Asking | undefined;
  /** Milliseconds since the epoch, by the clock of {@link Call.deadline}. Absent: that of this machine. */
  now?: () => number;
  /** How requests get to an address. Absent: by HTTP. */
  transport?: (address: string) => Transport;
}

type Change = 'POST' | 'PUT' | 'PATCH';
type Method = Change | 'GET' | 'DELETE';

/** The answer to one request. */
export interface Reply {
  metadata: unknown;
  /** Of what was read, to be sent back when it is replaced. */
  etag: string | undefined;
  /** The id of the background operation that goes on. */
  operation: string | undefined;
}

export interface SendOptions {
  body?: unknown;
  query?: Readonly<Record<string, string>>;
  /** Only if it still reads as it did. */
  etag?: string | undefined;
  /** Nothing is sent after its deadline or once it is aborted, and what was sent is not waited for then. */
  call?: Call | undefined;
  /** How long it may take, where that is less than usual. */
  withinMs?: number | undefined;
}

/** Why something may be removed. An unpacked image is a cache of Incus: nobody's data is in it. */
export type Removal = { order: DestroyOrder } | { unpackedImage: true };

/** A call is short, and the core's deadline is above it. */
const REQUEST_TIMEOUT_MS = 6_500;
/** A read that is not answered for so long is sent to the next member too: this one may have lost its power. */
const HEDGE_MS = 1_500;
/** What is said where no connection came about over which anything could have been sent. */
const NO_CONNECTION = new Set([
  'ECONNREFUSED',
  'ENOENT',
  'EACCES',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);

interface Target {
  address: string;
  transport: Transport;
}

/** Incus' REST API, as far as a driver needs it. Decides nothing. */
export class IncusClient {
  readonly project: string;
  readonly #targets: Target[];
  readonly #asking: Asking | undefined;
  readonly #now: () => number;

  constructor({ addresses, tls, project, asking, now = Date.now, transport }: Connection) {
    this.project = project;
    this.#asking = asking;
    this.#now = now;
    const to = transport ?? ((address: string) => httpTransport(address, tls, REQUEST_TIMEOUT_MS));
    this.#targets = addresses.map((address) => ({ address, transport: to(address) }));
  }

  get(path: string, query: Readonly<Record<string, string>> = {}, withinMs?: number): Promise<Reply> {
    return this.#request('GET', path, { query, withinMs });
  }

  /**
   * Changes something. All changes go through here; a removal says who ordered it.
   *
   * @throws {NotReached} if nothing was sent
   * @throws {IncusRefusal} if the daemon said no
   * @throws {Error} if the answer is lost or makes no sense
   */
  send(method: Change, path: string, options?: SendOptions): Promise<Reply>;
  send(method: 'DELETE', path: string, options: SendOptions & Removal): Promise<Reply>;
  send(method: Change | 'DELETE', path: string, options: SendOptions = {}): Promise<Reply> {
    return this.#request(method, path, options);
  }

  async #request(method: Method, path: string, options: SendOptions): Promise<Reply> {
    const { status, text, etag: found } = await this.#exchange(method, path, options);
    const reply = parse(text, status);
    // Something before it, such as a proxy: its 404 does not say that a machine is gone.
    if (status >= 400 && reply.type !== 'error')
      throw new Error(`${status} with what is no answer of Incus: ${text.slice(0, 200)}`);
    if (reply.type === 'error')
      throw new IncusRefusal(reply.error_code || status, String(reply.error), method);
    const operation = reply.type === 'async' ? String(reply.operation).split(/[/?]/)[3] : undefined;
    return { metadata: reply.metadata, etag: found, operation };
  }

  /** What is no JSON: the log of a console. @throws as `send` */
  async text(path: string): Promise<string> {
    const { status, text } = await this.#exchange('GET', path, {});
    if (status >= 400) throw new IncusRefusal(status, String(parse(text, status).error), 'GET');
    return text;
  }

  /** What the daemon's clock says, in milliseconds since the epoch. @throws as `send` */
  async date(): Promise<number> {
    const { date } = await this.#exchange('GET', '/1.0', {});
    return Date.parse(date ?? '');
  }

  async close(): Promise<void> {
    await Promise.all(this.#targets.map(({ transport }) => transport.close()));
  }

  /** The one that answered last is asked first. */
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

  /** @throws {NotReached} if it was not sent, or is a read */
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
      if (method === 'GET' || isUnsent(error)) throw new NotReached(problem);
      throw new Error(`the answer of Incus was lost (${problem})`, { cause: error });
    }
  }

  async #send(
    target: Target,
    method: Method,
    path: string,
    { body, query = {}, etag }: SendOptions,
    signal: AbortSignal,
  ): Promise<Answer> {
    const answer = await target.transport.send({
      method,
      path,
      // Incus refuses both.
      query: 'all-projects' in query ? query : { project: this.project, ...query },
      headers: {
        'User-Agent': 'berth',
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
        ...(etag !== undefined && { 'If-Match': etag }),
      },
      body: body === undefined ? undefined : JSON.stringify(body),
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

/** An order is sent to the next only where nothing was sent to the one before. @throws {AggregateError} of all problems */
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
  throw new Error(`Incus answers ${status} with what is no JSON: ${text.slice(0, 200)}`);
}

function isUnsent(error: unknown): boolean {
  return codesOf(error).some((code) => NO_CONNECTION.has(code));
}

function codesOf(error: unknown): string[] {
  if (error instanceof AggregateError) return error.errors.flatMap(codesOf);
  const { code, cause } = error as { code?: unknown; cause?: unknown };
  return [String(code), ...(cause instanceof Error ? codesOf(cause) : [])];
}

function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return reasonOf(error.errors[0]);
  return error instanceof Error ? error.message : String(error);
}
