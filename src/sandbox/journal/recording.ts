import { Buffer } from 'node:buffer';
import { nextTurn } from '../../ports/clock.ts';
import { type JournalEntry, requestHeaders, responseHeaders, toBody } from './entry.ts';
import { operationOf } from './operations.ts';

const MAX_SHARED_TEXTS = 256;

interface Body {
  text: string;
  state: 'reading' | 'whole' | 'cut' | 'broken';
}

/** An exchange, running or finished. Its entry is computed on demand. */
export class Recording {
  readonly number: number;
  readonly #at: number;
  readonly #of: { provider: string; account: string | undefined };
  readonly #request: { method: string; path: string; headers: Record<string, string> };
  #requestBody: Body | undefined;
  #answer: { status: number; headers: Record<string, string>; body: Body | undefined } | undefined;
  #problem: string | undefined;
  #server: { status: number; body: Body | undefined } | undefined;
  readonly #faults: string[] = [];
  #durationMs = 0;

  constructor(
    number: number,
    at: number,
    of: { provider: string; account: string | undefined },
    request: Request,
    reading: Reading,
  ) {
    const { pathname, search } = new URL(request.url);
    this.number = number;
    this.#at = at;
    this.#of = of;
    this.#request = {
      method: request.method,
      path: pathname + search,
      headers: requestHeaders(request.headers),
    };
    this.#requestBody = reading.start(request);
  }

  /** Records the server's own answer, before any fault. */
  served(response: Response, reading: Reading): void {
    const isCreate = this.#request.method === 'POST' && response.ok;
    this.#server = { status: response.status, body: isCreate ? reading.start(response) : undefined };
  }

  answered(response: Response, now: number, reading: Reading): void {
    const { status, headers } = response;
    this.#answer = { status, headers: responseHeaders(headers), body: reading.start(response) };
    this.#durationMs = now - this.#at;
  }

  broke(error: unknown, now: number): void {
    this.#problem = error instanceof Error ? error.message : String(error);
    this.#durationMs = now - this.#at;
  }

  struckBy(fault: string): void {
    this.#faults.push(fault);
  }

  toEntry(): JournalEntry {
    const { method, path, headers } = this.#request;
    const found = operationOf(this.#of.provider, method, path);
    const body = toBody(this.#answer?.body?.text);
    const requestBody = toBody(this.#requestBody?.text);
    const server = this.#serverEntry();
    const resource = found?.resource ?? (isCreate(method, this.#answer?.status) ? idIn(body) : undefined);
    const problem = this.#problem ?? problemOf(this.#answer?.body);
    return {
      number: this.number,
      at: new Date(this.#at).toISOString(),
      provider: this.#of.provider,
      ...(this.#of.account !== undefined && { account: this.#of.account }),
      method,
      path,
      ...(found && { operation: found.operation.id }),
      ...(resource !== undefined && { resource }),
      request: { headers, ...(requestBody !== undefined && { body: requestBody }) },
      status: this.#answer?.status ?? null,
      response: {
        headers: this.#answer?.headers ?? {},
        ...(body !== undefined && { body }),
        ...(problem !== undefined && { problem }),
      },
      duration_ms: Math.round(this.#durationMs),
      ...(server !== undefined && { server }),
      ...(this.#faults.length > 0 && { faults: this.#faults }),
    };
  }

  /** The server's answer, if the caller saw another one. */
  #serverEntry(): JournalEntry['server'] {
    const server = this.#server;
    if (server === undefined || (server.status === this.#answer?.status && this.#faults.length === 0))
      return undefined;
    const resource = idIn(toBody(server.body?.text));
    return { status: server.status, ...(resource !== undefined && { resource }) };
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

export class Reading {
  readonly #open = new Set<Promise<void>>();
  /** Recent texts by length: a poll mostly repeats its last answer. */
  readonly #texts = new Map<number, string>();
  readonly #maxBytes: number;

  /** Keeps at most `maxBytes` of a body. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Starts to read a body. Undefined if there is none. */
  start(of: Request | Response): Body | undefined {
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
      body.text = this.#shared(body.text.slice(0, this.#maxBytes));
    } catch {
      body.state = 'broken';
    }
  }

  #shared(text: string): string {
    const known = this.#texts.get(text.length);
    if (known === text) return known;
    if (this.#texts.size >= MAX_SHARED_TEXTS) this.#texts.clear();
    this.#texts.set(text.length, text);
    return text;
  }
}
