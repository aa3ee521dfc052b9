import { Agent, request } from 'node:http';
import { NotReached } from '../../../ports/errors.ts';

/** The simulator refused the request: it had no effect. */
export class Refused extends Error {
  override readonly name = 'Refused';
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** The largest answer is a listing: 100,000 machines take about 50 MB. */
const MAX_ANSWER_BYTES = 256 * 1024 * 1024;
/** System errors of a connection that was never made, so nothing was sent. */
const NO_CONNECTION = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH']);

/** JSON over HTTP to one address. Its calls have no deadline; the caller sets one. */
export class RemoteClient {
  readonly #address: string;
  readonly #token: string | undefined;
  readonly #agent = new Agent({ keepAlive: true });
  readonly #closed = new AbortController();

  constructor(address: string, token: string | undefined) {
    this.#address = address;
    this.#token = token;
  }

  /**
   * Sends a request and returns the parsed answer.
   *
   * @throws {NotReached} if nothing was sent
   * @throws {Refused} on a status from 400 to 499
   * @throws {Error} if the answer is lost or invalid
   */
  async send(
    method: 'GET' | 'POST' | 'PUT',
    path: string,
    body?: unknown,
    signal?: AbortSignal,
  ): Promise<unknown> {
    const { status, text } = await this.#exchange(method, path, body, signal);
    if (status === 200) return JSON.parse(text);
    if (status >= 400 && status <= 499) throw new Refused(status, `the simulator answers ${status}: ${text}`);
    throw new Error(`the simulator answers ${status}: ${text.slice(0, 300)}`);
  }

  close(): void {
    this.#closed.abort(new Error('the driver was closed'));
    this.#agent.destroy();
  }

  async #exchange(
    method: string,
    path: string,
    body: unknown,
    signal: AbortSignal | undefined,
  ): Promise<{ status: number; text: string }> {
    const { promise, resolve, reject } = Promise.withResolvers<{ status: number; text: string }>();
    const outgoing = request(
      new URL(path, this.#address),
      {
        method,
        agent: this.#agent,
        signal: AbortSignal.any([this.#closed.signal, ...(signal === undefined ? [] : [signal])]),
        headers: {
          'Content-Type': 'application/json',
          ...(this.#token !== undefined && { Authorization: `Bearer ${this.#token}` }),
        },
      },
      (incoming) => {
        const chunks: Buffer[] = [];
        let size = 0;
        incoming.on('data', (chunk: Buffer) => {
          size += chunk.length;
          if (size > MAX_ANSWER_BYTES) incoming.destroy(new Error('the answer is too long'));
          else chunks.push(chunk);
        });
        incoming.on('end', () =>
          resolve({ status: incoming.statusCode ?? 0, text: Buffer.concat(chunks).toString() }),
        );
        incoming.on('error', reject);
      },
    );
    outgoing.on('error', (error) => reject(this.#describe(error)));
    outgoing.end(body === undefined ? undefined : JSON.stringify(body));
    return promise;
  }

  #describe(error: NodeJS.ErrnoException): Error {
    if (NO_CONNECTION.has(error.code ?? ''))
      return new NotReached(`no simulator answers at ${this.#address} (${error.code})`, { cause: error });
    return new Error(`the answer of the simulator at ${this.#address} was lost`, { cause: error });
  }
}
