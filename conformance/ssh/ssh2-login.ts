import { createHash } from 'node:crypto';
import { connect, isIP, type Socket } from 'node:net';
import ssh2, { type AuthHandlerMiddleware, type ClientChannel } from 'ssh2';
import { printable } from '../text/printable.ts';
import type { SshRung } from '../transcript/records.ts';
import { isPrivateAddress, PrivateAddress, publicLookup } from './private-addresses.ts';
import type { SshLogin, SshOutcome } from './ssh-client.ts';

export type LoginOutcome = Omit<SshOutcome, 'totalMs'>;

type SshError = Error & { code?: string | number; level?: string };

const IDENTIFICATION_LINE = /^SSH-\d+\.\d+-/m;
/** A server that sends more text than this before its identification is not an SSH server. */
const MAX_GREETING_CHARS = 16_384;
const MAX_STDOUT_BYTES = 4_096;
/** Limit on the bytes received on one connection. */
const MAX_RECEIVED_BYTES = 4 * 1024 * 1024;
/** Timeout for one address of a host name before the next one is tried. */
const ADDRESS_ATTEMPT_MS = 1_000;

/**
 * One connection, one key, one command. `run` settles once the socket is closed, so that no socket, timer
 * or listener outlives it.
 */
export class Ssh2Login {
  readonly #login: SshLogin;
  readonly #address: string;
  #rung: SshRung = 'resolve';
  #greeting = '';
  #hasIdentified = false;
  #hostKey: string | undefined;
  #exitCode: number | undefined;
  #hasExited = false;
  #signal: string | undefined;
  #stdout: Buffer[] = [];
  #stdoutBytes = 0;
  #outcome: LoginOutcome | undefined;
  #settle: () => void = () => {};
  readonly #interrupt = (): void => this.#fail('the run was interrupted');

  constructor(login: SshLogin) {
    this.#login = login;
    this.#address = login.host.includes(':')
      ? `[${login.host}]:${login.port}`
      : `${login.host}:${login.port}`;
  }

  /** Runs the login to its end. Never throws. Call it once. */
  async run(): Promise<LoginOutcome> {
    const { signal, timeoutMs } = this.#login;
    const settled = new Promise<void>((resolve) => {
      this.#settle = resolve;
    });
    const timer = setTimeout(() => this.#fail(this.#whatIsMissing(timeoutMs)), timeoutMs);
    signal?.addEventListener('abort', this.#interrupt);
    let socket: Socket | undefined;
    let closed = Promise.resolve();
    try {
      if (signal?.aborted) this.#interrupt();
      else if (this.#login.host === '') this.#fail('there is no host to connect to');
      else if (this.#isForbidden()) this.#fail(this.#whyForbidden());
      else {
        socket = this.#connect();
        closed = new Promise((resolve) => socket?.once('close', () => resolve()));
        this.#listen(socket);
        this.#speak(new ssh2.Client(), socket);
      }
      await settled;
    } catch (error) {
      this.#fail(printable((error as Error).message, 300));
    }
    clearTimeout(timer);
    signal?.removeEventListener('abort', this.#interrupt);
    socket?.destroy();
    await closed;
    return this.#outcome ?? { rung: this.#rung, message: 'the login ended without an outcome' };
  }

  #isForbidden(): boolean {
    const { host, allowPrivate } = this.#login;
    return !allowPrivate && isIP(host) !== 0 && isPrivateAddress(host);
  }

  #whyForbidden(): string {
    return `${this.#login.host} leads to a private address, which a marketplace's users cannot reach; --allow-private connects to it all the same`;
  }

  #connect(): Socket {
    const { host, port, allowPrivate } = this.#login;
    if (isIP(host) !== 0) this.#rung = 'connect';
    return connect({
      host,
      port,
      noDelay: true,
      autoSelectFamilyAttemptTimeout: ADDRESS_ATTEMPT_MS,
      ...(!allowPrivate && { lookup: publicLookup }),
    });
  }

  #listen(socket: Socket): void {
    socket.once('lookup', (error) => {
      if (error === null) this.#rung = 'connect';
    });
    socket.once('connect', () => {
      this.#rung = 'handshake';
    });
    socket.on('error', (error) => this.#fail(this.#describe(error)));
    socket.once('end', () => this.#lose());
    socket.once('close', () => this.#lose());

    socket.on('data', (chunk: Buffer) => {
      if (socket.bytesRead > MAX_RECEIVED_BYTES) this.#fail(this.#whatFloods());
      if (this.#hasIdentified) return;
      this.#greeting += chunk.toString('latin1');
      this.#hasIdentified = IDENTIFICATION_LINE.test(this.#greeting);
      if (!this.#hasIdentified && this.#greeting.length > MAX_GREETING_CHARS) this.#fail(this.#noSsh());
    });
  }

  #speak(client: ssh2.Client, socket: Socket): void {
    client.on('error', (error) => this.#fail(this.#describe(error)));
    client.once('handshake', () => {
      this.#rung = 'authenticate';
    });
    client.once('ready', () => {
      this.#rung = 'execute';
      this.#execute(client);
    });
    client.connect({
      sock: socket,
      username: this.#login.username,
      readyTimeout: 0,
      hostVerifier: (hostKey: Buffer) => {
        this.#hostKey ??= fingerprintOf(hostKey);
        return true;
      },
      authHandler: this.#authHandler(),
    });
  }

  /** Offers the key once. If ssh2 then asks for another method, the key was refused or is not sufficient. */
  #authHandler(): AuthHandlerMiddleware {
    const { username, privateKey } = this.#login;
    const key = ssh2.utils.parseKey(privateKey);
    if (key instanceof Error) throw new Error(`the private key cannot be read: ${key.message}`);
    let isOffered = false;
    return (methodsLeft, partialSuccess, next) => {
      if (!isOffered) {
        isOffered = true;
        next({ type: 'publickey', username, key });
        return;
      }
      const methods = methodsLeft?.length ? printable(methodsLeft.join(', '), 200) : 'nothing else';
      this.#fail(
        partialSuccess
          ? `the server accepted the key for user ${username}, but wants more: ${methods}`
          : `the server refused the key for user ${username}; it accepts: ${methods}`,
      );
    };
  }

  #execute(client: ssh2.Client): void {
    client.exec(this.#login.command ?? 'true', (error, channel) => {
      if (error) this.#fail(`logged in, but ${describeExec(error)}`);
      else this.#read(channel);
    });
  }

  #read(channel: ClientChannel): void {
    channel.on('data', (chunk: Buffer) => {
      const wanted = chunk.subarray(0, MAX_STDOUT_BYTES - this.#stdoutBytes);
      this.#stdoutBytes += wanted.length;
      if (wanted.length > 0) this.#stdout.push(Buffer.from(wanted));
    });
    channel.stderr.resume();
    channel.on('error', (error: Error) => this.#fail(this.#describe(error)));
    channel.once('exit', (code: number | null, signal?: string) => {
      this.#hasExited = true;
      if (code === null) this.#signal = signal;
      else this.#exitCode = code;
    });
    channel.once('close', () => this.#succeed());
    channel.end();
  }

  #succeed(): void {
    const signal = this.#signal === undefined ? undefined : printable(this.#signal, 40);
    this.#finish({
      rung: 'done',
      ...(signal !== undefined && { message: `the command was ended by ${signal}` }),
      ...(this.#exitCode !== undefined && { exitCode: this.#exitCode }),
      stdout: Buffer.concat(this.#stdout).toString('utf8'),
    });
  }

  /** Not every server closes the channel before the connection. */
  #lose(): void {
    if (this.#hasExited) this.#succeed();
    else if (this.#isTalkingOtherwise) this.#fail(this.#noSsh());
    else this.#fail(`the server closed the connection ${this.#whenLost()}`);
  }

  #fail(message: string): void {
    this.#finish({ rung: this.#rung, message });
  }

  #finish(outcome: LoginOutcome): void {
    if (this.#outcome !== undefined) return;
    this.#outcome = { ...outcome, ...(this.#hostKey !== undefined && { hostKey: this.#hostKey }) };
    this.#settle();
  }

  #describe(error: SshError): string {
    const { host } = this.#login;
    if (error instanceof PrivateAddress) return this.#whyForbidden();
    if (this.#rung === 'resolve') return `the name ${host} does not resolve (${error.code})`;
    if (error.code === 'ECONNREFUSED') return `connection refused by ${this.#address}`;
    if (error.code === 'EHOSTUNREACH' || error.code === 'ENETUNREACH') return `no route to ${this.#address}`;
    if (error.code === 'ETIMEDOUT') return `${this.#address} did not answer to TCP`;
    if (error.code === 'ECONNRESET' || error.code === 'EPIPE')
      return `the server reset the connection ${this.#whenLost()}`;
    const what = printable(error.message, 300);
    if (this.#rung === 'connect') return `no TCP connection to ${this.#address}: ${what}`;
    if (this.#isTalkingOtherwise) return this.#noSsh();
    const noMatch = /no matching (.*)/.exec(what)?.[1];
    if (noMatch !== undefined) return `no common algorithms with the server: no matching ${noMatch}`;
    return `${whatFailed[this.#rung]}: ${what}`;
  }

  #whatIsMissing(timeoutMs: number): string {
    const within = `within ${timeoutMs} ms`;
    switch (this.#rung) {
      case 'resolve':
        return `the name ${this.#login.host} was not resolved ${within}`;
      case 'connect':
        return `no TCP connection to ${this.#address} ${within}`;
      case 'handshake':
        if (this.#isTalkingOtherwise) return this.#noSsh();
        return this.#hasIdentified
          ? `no key exchange with ${this.#address} ${within}`
          : `${this.#address} accepted the connection, but sent no SSH banner ${within}`;
      case 'authenticate':
        return `no answer to the key for user ${this.#login.username} ${within}`;
      default:
        return `logged in, but the command did not end ${within}`;
    }
  }

  #whenLost(): string {
    if (this.#rung === 'handshake' && !this.#hasIdentified) return 'before its SSH banner';
    return whenLost[this.#rung];
  }

  get #isTalkingOtherwise(): boolean {
    return this.#rung === 'handshake' && !this.#hasIdentified && this.#greeting !== '';
  }

  #noSsh(): string {
    return `${this.#address} is no SSH server: what it sent is no SSH identification`;
  }

  #whatFloods(): string {
    const limit = `more than ${MAX_RECEIVED_BYTES / 1024 / 1024} MiB`;
    return this.#rung === 'execute'
      ? `logged in, but the command wrote ${limit} and was cut off`
      : `the server sent ${limit} before any login`;
  }
}

const whenLost: Readonly<Record<SshRung, string>> = {
  resolve: 'at once',
  connect: 'at once',
  handshake: 'during the key exchange',
  authenticate: 'during the authentication',
  execute: 'before the command had ended',
  done: 'at the end',
};

const whatFailed: Readonly<Record<SshRung, string>> = {
  resolve: 'the name does not resolve',
  connect: 'no TCP connection',
  handshake: 'no key exchange',
  authenticate: 'the authentication failed',
  execute: 'the command failed',
  done: 'the connection failed at its end',
};

function describeExec(error: Error): string {
  if (/Channel open failure/.test(error.message))
    return `the server opened no session: ${printable(error.message.replace(/^.*failure: /, ''), 200)}`;
  if (/Unable to exec/.test(error.message)) return 'the server refused to run a command';
  return `no command could be run: ${printable(error.message, 200)}`;
}

/** `SHA256:…` of a key blob, as `ssh-keygen -l` prints it. */
function fingerprintOf(blob: Buffer): string {
  return `SHA256:${createHash('sha256').update(blob).digest('base64').replaceAll('=', '')}`;
}
