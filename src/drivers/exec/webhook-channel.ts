import { createWireTransport, NotConnected, type Transport } from '../../client/transport.ts';
import { parseJson } from '../../contract/parse-json.ts';
import type { CertificateSeen } from '../../ports/certificates.ts';
import { type Channel, type ChannelSetting, type Limits, MAX_ANSWER_BYTES } from './channel.ts';
import { AnswerLost, messageOf, NotSent, quoted, Unauthorized } from './errors.ts';
import { answerSchema, type Method } from './protocol/messages.ts';
import { Secrets } from './secrets.ts';

export interface WebhookOptions extends ChannelSetting {
  url: string;
  token: string | undefined;
  /** Called with the certificate that the driver shows. */
  seen?: CertificateSeen | undefined;
}

/** Retry interval for a driver that cannot be reached at the start. */
const RETRY_MS = 1_000;
/** Longer than a host on a network takes that answers. */
const CONNECT_WITHIN_MS = 3_000;
const MAX_CONNECTIONS = 256;

/** A driver that answers over HTTP. Each request is a POST; redirects are not followed. */
export class WebhookChannel implements Channel {
  readonly isSerial = false;
  readonly #options: WebhookOptions;
  readonly secrets: Secrets;
  readonly #url: URL;
  readonly #transport: Transport;
  readonly #closed = new AbortController();
  #greeting: Promise<void> | undefined;
  #isLost = false;
  #nextId = 1;

  constructor(options: WebhookOptions) {
    this.#options = options;
    this.secrets = new Secrets(options.token === undefined ? [] : [options.token]);
    this.#url = new URL(options.url);
    this.#transport = createWireTransport({
      allowPrivate: true,
      connectTimeoutMs: CONNECT_WITHIN_MS,
      connections: MAX_CONNECTIONS,
      certificateSeen: options.seen,
      clock: options.clock,
    });
  }

  async open(): Promise<void> {
    const { clock, startTimeoutMs } = this.#options;
    const endsAt = clock.now() + startTimeoutMs;
    for (;;) {
      try {
        return await this.#greet();
      } catch (error) {
        if (!(error instanceof NotSent) || clock.now() + RETRY_MS > endsAt) throw error;
        const { promise, resolve } = Promise.withResolvers<void>();
        clock.setTimer(RETRY_MS, resolve);
        await promise;
      }
    }
  }

  /** After contact was lost, another program may answer, so `info` is asked again first. */
  async ask(method: Method, args: object, limits?: Limits): Promise<unknown> {
    try {
      this.#greeting ??= this.#greet();
      await this.#greeting;
    } catch (error) {
      this.#lost(error);
      if (error instanceof Unauthorized) throw error;
      throw new NotSent(messageOf(error), { cause: error });
    }
    try {
      return await this.#send(method, args, limits);
    } catch (error) {
      this.#lost(error);
      throw error;
    }
  }

  async close(): Promise<void> {
    this.#closed.abort(new Error('the driver was closed'));
    await this.#transport.close();
  }

  #lost(error: unknown): void {
    this.#greeting = undefined;
    if (this.#isLost || this.#closed.signal.aborted) return;
    this.#isLost = true;
    this.#options.log.error(
      {},
      `${messageOf(error)}: Berth starts no work and changes no state until it answers again`,
    );
  }

  async #greet(): Promise<void> {
    const { greeter, log } = this.#options;
    greeter.greet(await this.#send('info', {}));
    this.#isLost = false;
    this.#greeting = Promise.resolve();
    const { name, version } = greeter.info;
    log.info({ driver: name, version, url: this.#url.origin }, 'the driver answers');
  }

  async #send(method: Method, args: object, limits?: Limits): Promise<unknown> {
    const { clock, timeoutMs } = this.#options;
    const now = clock.now();
    const withinMs = Math.min(timeoutMs, (limits?.deadline ?? Number.POSITIVE_INFINITY) - now);
    if (withinMs <= 0 || limits?.signal.aborted === true)
      throw new NotSent(`${method} was cancelled before it was sent to the driver`);
    const id = String(this.#nextId++);
    const body = JSON.stringify({ id, method, expires_at: Math.floor(now + withinMs), ...args });
    const { status, type, text } = await this.#exchange(method, body, withinMs, limits?.signal);
    const said = (): string => quoted(this.secrets.clean(text));
    if (status === 401 || status === 403) {
      const remedy = this.#options.token === undefined ? 'no token was sent' : 'it rejected the token';
      throw new Unauthorized(`the driver answers ${status}: ${remedy}`);
    }
    if (status === 429) throw new NotSent(`the driver answers 429 (too many requests): ${said()}`);
    if (status >= 300 && status < 400)
      throw new AnswerLost(
        `the driver answers ${status}, a redirect, which Berth does not follow: set url to the final address`,
        'invalid',
      );
    if (status !== 200)
      throw new AnswerLost(`the driver answers ${method} with status ${status}: ${said()}`, 'error');
    if (!/^application\/json\b/i.test(type))
      throw new AnswerLost(
        `the driver answers ${method} with ${type === '' ? 'no content type' : quoted(type)} instead of application/json: ${said()}`,
        'invalid',
      );
    return resultOf(method, id, text, said);
  }

  async #exchange(
    method: Method,
    body: string,
    withinMs: number,
    signal?: AbortSignal,
  ): Promise<{ status: number; type: string; text: string }> {
    const { clock, token } = this.#options;
    const over = new AbortController();
    /** Closes the connection, which signals the cancellation to the driver. */
    const giveUp = (when: string): void =>
      over.abort(new AnswerLost(`the driver did not answer ${method} ${when}`, 'silence'));
    const timer = clock.setTimer(withinMs, () => giveUp(`within ${Math.round(withinMs / 100) / 10} s`));
    const abort = (): void => giveUp('before it was cancelled');
    signal?.addEventListener('abort', abort);
    const headers = {
      'Content-Type': 'application/json',
      Accept: 'application/json',
      ...(token !== undefined && { Authorization: `Bearer ${token}` }),
    };
    const ends = AbortSignal.any([over.signal, this.#closed.signal]);
    try {
      const request = { method: 'POST', url: this.#url.href, headers, body } as const;
      const answer = await this.#transport.send(request, ends);
      return { status: answer.status, type: answer.contentType, text: await readBody(answer.body) };
    } catch (error) {
      if (over.signal.aborted) throw over.signal.reason;
      const { cause = error } = error as Error;
      const reason = (cause as NodeJS.ErrnoException).code ?? messageOf(cause);
      if (error instanceof NotConnected)
        throw new NotSent(`the driver cannot be reached at ${this.#url.origin} (${reason})`);
      throw new AnswerLost(`the driver broke off its answer to ${method} (${reason})`, 'end');
    } finally {
      timer.cancel();
      signal?.removeEventListener('abort', abort);
    }
  }
}

async function readBody(body: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > MAX_ANSWER_BYTES) throw new Error(`it is longer than ${MAX_ANSWER_BYTES >> 20} MiB`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

/** @throws {AnswerLost} */
function resultOf(method: Method, id: string, text: string, said: () => string): unknown {
  const answer = answerSchema.safeParse(parseJson(text));
  if (!answer.success || answer.data.id !== id)
    throw new AnswerLost(
      `the driver gave an invalid answer to ${method}: expected {"id": ${JSON.stringify(id)}, "result": …}, got ${said()}`,
      'invalid',
    );
  if ('error' in answer.data)
    throw new AnswerLost(`the driver reported an error for ${method}: ${said()}`, 'error');
  return answer.data.result;
}
