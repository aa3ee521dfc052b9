import { connect, isIP, type Socket } from 'node:net';
import ssh2, { type AnyAuthMethod, type ParsedKey } from 'ssh2';
import { allowedLookup, ForbiddenAddress } from '../contract/allowed-lookup.ts';
import type { SshPublicKey } from '../contract/ssh-key.ts';
import type { ProbeResult, ProbeStep, SshTarget } from '../ports/ssh-probe.ts';
import { clearTimeout, performance, setTimeout } from '../ports/timers.ts';
import { fingerprintOf, toQueryKey } from './query.ts';

export type StepTimeouts = Record<ProbeStep, number>;

export interface ProbeLimits {
  timeoutsMs: StepTimeouts;
  /** When the whole probe ends, on the clock of `performance.now()`. */
  endsAt: number;
  /** Addresses that are never connected to. */
  isForbidden: ((address: string) => boolean) | undefined;
}

const IDENTIFICATION_LINE = /^SSH-\d+\.\d+-/m;
/** A server that sends more text than this before its identification is not an SSH server. */
const MAX_GREETING_CHARS = 16_384;

/**
 * One connection that offers at most one key. `run` settles once the socket is closed, so that no
 * socket, timer or listener outlives it.
 */
export class ProbeConnection {
  readonly #target: SshTarget;
  readonly #key: SshPublicKey | undefined;
  readonly #pin: string | undefined;
  readonly #limits: ProbeLimits;
  #step: ProbeStep = 'connect';
  #deadline: NodeJS.Timeout | undefined;
  #hostKeyFingerprint = '';
  #result: ProbeResult | undefined;
  #settle: () => void = () => {};

  constructor(
    target: SshTarget,
    key: SshPublicKey | undefined,
    pin: string | undefined,
    limits: ProbeLimits,
  ) {
    this.#target = target;
    this.#key = key;
    this.#pin = pin;
    this.#limits = limits;
  }

  /** Runs all steps. Never throws. */
  async run(): Promise<ProbeResult> {
    let closed = Promise.resolve();
    let socket: Socket | undefined;
    try {
      const settled = new Promise<void>((resolve) => {
        this.#settle = resolve;
      });
      this.#enter('connect');
      socket = this.#connect();
      closed = new Promise((resolve) => socket?.once('close', () => resolve()));
      this.#listen(socket);
      this.#speak(new ssh2.Client(), socket);
      await settled;
    } catch (error) {
      this.#fail(error instanceof Error ? error.message : String(error));
    }
    clearTimeout(this.#deadline);
    socket?.destroy();
    await closed;
    return this.#result ?? { ok: false, step: this.#step, detail: 'the probe ended without a result' };
  }

  /** @throws {ForbiddenAddress} */
  #connect(): Socket {
    const { host, port } = this.#target;
    const { isForbidden } = this.#limits;
    if (isForbidden === undefined) return connect({ host, port, noDelay: true });
    // For an IP address, `connect` does no lookup, so it is checked here.
    if (isIP(host) !== 0 && isForbidden(host)) throw new ForbiddenAddress(host);
    return connect({ host, port, noDelay: true, lookup: allowedLookup(isForbidden) });
  }

  #listen(socket: Socket): void {
    socket.once('connect', () => this.#enter('banner'));
    socket.on('error', (error) => this.#fail(this.#describe(error)));
    socket.once('end', () => this.#fail(`the server closed the connection ${whenLost[this.#step]}`));
    socket.once('close', () => this.#fail(`the connection was closed ${whenLost[this.#step]}`));

    let greeting = '';
    const read = (chunk: Buffer): void => {
      greeting += chunk.toString('latin1');
      if (IDENTIFICATION_LINE.test(greeting)) {
        socket.off('data', read);
        this.#enter('handshake');
      } else if (greeting.length > MAX_GREETING_CHARS) {
        this.#fail('the server sent text, but no SSH banner');
      }
    };
    socket.on('data', read);
  }

  #speak(client: ssh2.Client, socket: Socket): void {
    client.on('error', (error) => this.#fail(this.#describe(error)));
    client.once('handshake', () => {
      this.#enter('auth');
      if (this.#key === undefined) this.#succeed();
    });
    // At this point the server may only answer PK_OK. A server that accepts an unsigned key accepts every client.
    client.once('ready', () => this.#fail('was accepted without a signature: the server lets anybody in'));
    client.connect({
      sock: socket,
      username: this.#target.username,
      readyTimeout: 0,
      hostVerifier: (hostKey: Buffer) => this.#judgeHostKey(hostKey),
      authHandler: this.#authHandler(),
    });
  }

  /** Offers the key. When ssh2 asks for another method, the server has refused the key. */
  #authHandler(): ssh2.AuthHandlerMiddleware {
    const key = this.#key;
    const methods: AnyAuthMethod[] = [];
    if (key !== undefined) {
      const agent = new QueryAgent(toQueryKey(key), () => this.#succeed());
      methods.push({ type: 'agent', username: this.#target.username, agent });
    }
    return (_methodsLeft, _partialSuccess, next) => {
      const method = methods.shift();
      if (method !== undefined) next(method);
      else this.#fail('was refused');
    };
  }

  #judgeHostKey(hostKey: Buffer): boolean {
    this.#hostKeyFingerprint = fingerprintOf(hostKey);
    if (this.#pin === undefined || this.#pin === this.#hostKeyFingerprint) return true;
    this.#step = 'host_key';
    this.#fail(
      `expected the host key ${this.#pin}, got ${this.#hostKeyFingerprint}: another machine answers there`,
    );
    return false;
  }

  #enter(step: ProbeStep): void {
    if (this.#result !== undefined) return;
    this.#step = step;
    clearTimeout(this.#deadline);
    const { timeoutsMs, endsAt } = this.#limits;
    const timeoutMs = Math.max(0, Math.round(Math.min(timeoutsMs[step], endsAt - performance.now())));
    this.#deadline = setTimeout(() => this.#fail(`${whatIsMissing[step]} within ${timeoutMs} ms`), timeoutMs);
  }

  #succeed(): void {
    this.#finish({ ok: true, hostKeyFingerprint: this.#hostKeyFingerprint });
  }

  #fail(detail: string): void {
    this.#finish({ ok: false, step: this.#step, detail });
  }

  #finish(result: ProbeResult): void {
    if (this.#result !== undefined) return;
    this.#result = result;
    this.#settle();
  }

  #describe(error: Error & { code?: string | number }): string {
    const { host, port } = this.#target;
    const address = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
    if (error.code === 'ECONNREFUSED') return `connection refused by ${address}`;
    if (error.code === 'ENOTFOUND' || error.code === 'EAI_AGAIN') return `the name ${host} does not resolve`;
    if (error.code === 'EHOSTUNREACH' || error.code === 'ENETUNREACH') return `no route to ${address}`;
    if (error.code === 'ECONNRESET') return `the server reset the connection ${whenLost[this.#step]}`;
    const why = isOfTheServer(error) ? `the server broke off ${whenLost[this.#step]}` : error.message;
    return this.#step === 'auth' ? `could not be queried: ${why}` : why;
  }
}

/** ssh2's own errors that list what both sides offered. Other protocol errors may contain text from the server. */
const NO_MATCH = /^Handshake failed: no matching [a-z ()>-]+$/i;

/** Whether the message may be the server's own text, which must not be shown. A server chooses its disconnect text. */
function isOfTheServer(error: Error & { code?: string | number; level?: string }): boolean {
  if (typeof error.code === 'number') return true;
  return error.level !== undefined && error.level !== 'client-socket' && !NO_MATCH.test(error.message);
}

const whatIsMissing: Record<ProbeStep, string> = {
  connect: 'no TCP connection',
  banner: 'no SSH banner',
  handshake: 'no key exchange',
  host_key: 'no host key',
  auth: 'got no answer',
};

const whenLost: Record<ProbeStep, string> = {
  connect: 'at once',
  banner: 'before its SSH banner',
  handshake: 'during the key exchange',
  host_key: 'during the key exchange',
  auth: 'before it answered the key query',
};

/** Holds one public key. ssh2 asks it for a signature when the server accepts the key; it never signs. */
class QueryAgent extends ssh2.BaseAgent<ParsedKey> {
  readonly #key: ParsedKey;
  readonly #onAccepted: () => void;

  constructor(key: ParsedKey, onAccepted: () => void) {
    super();
    this.#key = key;
    this.#onAccepted = onAccepted;
  }

  override getIdentities(callback: ssh2.IdentityCallback<ParsedKey>): void {
    callback(undefined, [this.#key]);
  }

  override sign(): void {
    this.#onAccepted();
  }
}
