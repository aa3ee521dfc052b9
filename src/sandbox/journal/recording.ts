import { Buffer } from 'node:buffer';
import { nextTurn } from '../../ports/clock.ts';
import { routeOf } from '../operations.ts';
import type { Exchange } from '../provider.ts';
import { type JournalEntry, type KeptHeaders, Recent, toBody } from './entry.ts';
import { bodyOfWhole } from './whole-answer.ts';

interface Body {
  text: string;
  state: 'reading' | 'whole' | 'cut' | 'broken';
}

/** What many exchanges have in common. */
type Kind = Pick<JournalEntry, 'provider' | 'account' | 'method' | 'path'>;

/** An answer of the server itself. The body is that of a create. */
interface Served {
  status: number;
  body: Body | undefined;
}

const NONE: readonly Served[] = [];

/** An exchange, running or finished. Its entry is computed on demand. Equal parts are shared: a poll is a few numbers. */
export class Recording {
  readonly number: number;
  readonly #at: number;
  readonly #of: Kind;
  readonly #headers: Record<string, string>;
  readonly #body: Body | undefined;
  #status: number | undefined;
  #answerHeaders: Record<string, string> | undefined;
  #answerBody: Body | undefined;
  #problem: string | undefined;
  /** The server's own answers: several, if it got the request several times. */
  #served: readonly Served[] = NONE;
  #faults: string[] | undefined;
  #durationMs = 0;

  constructor(number: number, at: number, { provider, account, request }: Exchange, reading: Reading) {
    const { pathname, search } = new URL(request.url);
    const of = { provider, account, method: request.method, path: pathname + search };
    this.number = number;
    this.#at = at;
    this.#of = reading.kinds.get(JSON.stringify(of), () => of);
    this.#headers = reading.headers.of('request', request.headers);
    this.#body = reading.start(request);
  }

  /** Records the server's own answer, before any fault. */
  served(response: Response, reading: Reading): void {
    const isCreated = this.#of.method === 'POST' && response.ok;
    // The answer of a read is kept once, as the caller gets it.
    const served = { status: response.status, body: isCreated ? reading.start(response) : undefined };
    const isPlain = this.#served === NONE && !isCreated;
    this.#served = isPlain
      ? reading.served.get(String(response.status), () => [served])
      : [...this.#served, served];
  }

  answered(response: Response, now: number, reading: Reading): void {
    this.#status = response.status;
    this.#answerHeaders = reading.headers.of('response', response.headers);
    this.#answerBody = reading.start(response);
    this.#durationMs = now - this.#at;
  }

  broke(error: unknown, now: number): void {
    this.#problem = error instanceof Error ? error.message : String(error);
    this.#durationMs = now - this.#at;
  }

  triggered(fault: string): void {
    this.#faults = [...(this.#faults ?? []), fault];
  }

  toEntry(): JournalEntry {
    const { provider, account, method, path } = this.#of;
    const found = routeOf(provider, method, path);
    const body = toBody(this.#answerBody?.text);
    const made = this.#made();
    const resource = found.resource ?? (isCreate(method, this.#status) ? idIn(body) : undefined);
    const problem = this.#problem ?? problemOf(this.#answerBody);
    return {
      number: this.number,
      at: new Date(this.#at).toISOString(),
      provider,
      account,
      method,
      path,
      operation: found.operation,
      resource,
      request: { headers: this.#headers, body: toBody(this.#body?.text) },
      status: this.#status ?? null,
      response: { headers: this.#answerHeaders ?? {}, body, problem },
      duration_ms: Math.round(this.#durationMs),
      server: this.#serverEntry(),
      made: made.length > 1 ? made : undefined,
      faults: this.#faults,
    };
  }

  /** The server's answer, if the caller saw another one. */
  #serverEntry(): JournalEntry['server'] {
    const server = this.#served.at(-1);
    if (server === undefined || (server.status === this.#status && this.#faults === undefined))
      return undefined;
    return { status: server.status, resource: idIn(toBody(server.body?.text)) };
  }

  /** The ids of the resources that the server made. */
  #made(): string[] {
    return [...new Set(this.#served.flatMap(({ body }) => idIn(toBody(body?.text)) ?? []))];
  }
}

/** The id in a create's answer. Paths take a marketplace volume's `volumeId`. */
function idIn(body: unknown): string | undefined {
  const { id, volumeId = id } = (body ?? {}) as Record<string, unknown>;
  return typeof volumeId === 'string' ? volumeId : undefined;
}

function isCreate(method: string, status: number | undefined): boolean {
  return method === 'POST' && status !== undefined && status < 300;
}

function problemOf(body: Body | undefined): string | undefined {
  if (body?.state === 'broken') return `the answer broke off after ${Buffer.byteLength(body.text)} bytes`;
  if (body?.state === 'reading') return `${Buffer.byteLength(body.text)} bytes of the answer came so far`;
  return body?.state === 'cut' ? 'the rest of the answer was not kept' : undefined;
}

/** Reads the parts of exchanges, and shares those that are equal. */
export class Reading {
  readonly headers: KeptHeaders;
  readonly #open = new Set<Promise<void>>();
  readonly kinds = new Recent<Kind>();
  readonly served = new Recent<readonly Served[]>();
  readonly #bodies = new Recent<Body>();
  readonly #maxBytes: number;

  /** Keeps at most `maxBytes` of a body. */
  constructor(maxBytes: number, headers: KeptHeaders) {
    this.#maxBytes = maxBytes;
    this.headers = headers;
  }

  /** Starts to read a body. Undefined if there is none. */
  start(of: Request | Response): Body | undefined {
    const text = of instanceof Response ? bodyOfWhole(of) : undefined;
    if (text !== undefined && text.length <= this.#maxBytes) return this.#shared(text);
    if (of.body === null) return undefined;
    const body: Body = { text: '', state: 'reading' };
    const done = this.#read(of.clone(), body).finally(() => this.#open.delete(done));
    this.#open.add(done);
    return body;
  }

  /** Resolves when all bodies that have ended by now are read. Bodies still in transit are not awaited. */
  async settled(): Promise<void> {
    await Promise.race([Promise.all(this.#open), nextTurn()]);
  }

  async #read(copy: Request | Response, body: Body): Promise<void> {
    const decoder = new TextDecoder();
    let bytes = 0;
    try {
      for await (const chunk of copy.body ?? []) {
        if (bytes < this.#maxBytes) body.text += decoder.decode(chunk, { stream: true });
        bytes += chunk.byteLength;
      }
      body.state = bytes > this.#maxBytes ? 'cut' : 'whole';
      body.text = this.#shared(body.text.slice(0, this.#maxBytes)).text;
    } catch {
      body.state = 'broken';
    }
  }

  #shared(text: string): Body {
    return this.#bodies.get(text, () => ({ text, state: 'whole' }));
  }
}
