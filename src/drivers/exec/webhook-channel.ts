import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { Socket } from 'node:net';
import { parseJson } from '../../contract/parse-json.ts';
import { type CertificateSeen, reportPeer } from '../../ports/certificates.ts';
import { type Channel, type ChannelSetting, type Limits, MAX_ANSWER_BYTES } from './channel.ts';
import { AnswerLost, type Loss, messageOf, NotSent, quoted, Unauthorized } from './errors.ts';
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
/** One HTTPS request per hour opens a new connection, since a kept-alive one would hide a renewed certificate. */
const NEW_CONNECTION_EVERY_MS = 3_600_000;

/** A driver that answers over HTTP. Each request is a POST; redirects are not followed. */
export class WebhookChannel implements Channel {
  readonly isSerial = false;
  readonly #options: WebhookOptions;
  readonly secrets: Secrets;
  readonly #url: URL;
  readonly #agent: HttpAgent;
  readonly #closed = new AbortController();
  #greeting: Promise<void> | undefined;
  #isLost = false;
  #nextId = 1;
  #connectedAt: number;

  constructor(options: WebhookOptions) {
    this.#options = options;
    this.secrets = new Secrets(options.token === undefined ? [] : [options.token]);
    this.#url = new URL(options.url);
    this.#connectedAt = options.clock.now();
    this.#agent = this.#isTls
      ? new HttpsAgent({ keepAlive: true, maxCachedSessions: 0 })
      : new HttpAgent({ keepAlive: true });
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
    this.#agent.destroy();
  }

  get #isTls(): boolean {
    return this.#url.protocol === 'https:';
  }

  #isConnectionOld(): boolean {
    const now = this.#options.clock.now();
    if (!this.#isTls || now - this.#connectedAt < NEW_CONNECTION_EVERY_MS) return false;
    this.#connectedAt = now;
    return true;
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

  #exchange(
    method: Method,
    body: string,
    withinMs: number,
    signal?: AbortSignal,
  ): Promise<{ status: number; type: string; text: string }> {
    const { clock, token, seen = () => undefined } = this.#options;
    const { promise, resolve, reject } = Promise.withResolvers<{
      status: number;
      type: string;
      text: string;
    }>();
    let isSent = false;
    const fail = (problem: string, loss: Loss = 'end'): void =>
      reject(isSent ? new AnswerLost(`the driver ${problem}`, loss) : new NotSent(`the driver ${problem}`));
    const send = this.#isTls ? httpsRequest : httpRequest;
    const outgoing = send(
      this.#url,
      {
        method: 'POST',
        agent: this.#isConnectionOld() ? false : this.#agent,
        signal: this.#closed.signal,
        headers: {
          'Content-Type': 'application/json',
          'Content-Length': Buffer.byteLength(body),
          Accept: 'application/json',
          ...(token !== undefined && { Authorization: `Bearer ${token}` }),
        },
      },
      (incoming) =>
        void readBody(incoming).then(
          (text) =>
            resolve({
              status: incoming.statusCode ?? 0,
              type: incoming.headers['content-type'] ?? '',
              text,
            }),
          (error) => fail(`ended its answer to ${method} early (${messageOf(error)})`),
        ),
    );
    outgoing.once('socket', (socket: Socket) => {
      isSent = !socket.connecting;
      if (isSent) return;
      socket.once(this.#isTls ? 'secureConnect' : 'connect', () => {
        isSent = true;
        reportPeer(seen, null, socket);
      });
    });
    outgoing.on('error', (error: NodeJS.ErrnoException) => {
      reportPeer(seen, error, null);
      fail(
        isSent
          ? `broke off before it answered ${method} (${error.code ?? messageOf(error)})`
          : `cannot be reached at ${this.#url.origin} (${error.code ?? messageOf(error)})`,
      );
    });
    /** Closes the connection, which signals the cancellation to the driver. */
    const giveUp = (when: string): void => {
      fail(
        isSent ? `did not answer ${method} ${when}` : `cannot be reached at ${this.#url.origin} ${when}`,
        'silence',
      );
      outgoing.destroy();
    };
    const timer = clock.setTimer(withinMs, () => giveUp(`within ${Math.round(withinMs / 100) / 10} s`));
    const abort = (): void => giveUp('before it was cancelled');
    signal?.addEventListener('abort', abort);
    outgoing.end(body);
    return promise.finally(() => {
      timer.cancel();
      signal?.removeEventListener('abort', abort);
    });
  }
}

async function readBody(incoming: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
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
