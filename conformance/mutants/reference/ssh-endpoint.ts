import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import ssh2, { type AuthContext, type Connection, type ServerChannel } from 'ssh2';
import { type Machine, type Outcome, runOn } from './guest.ts';

export interface SshAttempt {
  username: string;
  /** `none`, `publickey`, `password` … */
  method: string;
  /** Base64, if a key was offered. */
  key?: string;
}

export const SSH_HOST = '127.0.0.1';
export const SSH_USERNAME = 'ubuntu';
const ED25519_BLOB_BYTES = 51;

export interface SshEndpointOptions {
  machine: () => Machine;
  mayLogin: (attempt: SshAttempt) => boolean;
  /** What a login prints before its command does. */
  greeting: () => string;
}

/** The sshd of one machine, on a real port of the loopback interface. */
export class SshEndpoint {
  readonly #options: SshEndpointOptions;
  readonly #sockets = new Set<Socket>();
  #listener: Server | undefined;
  #settled: Promise<void> = Promise.resolve();
  #port = 0;

  constructor(options: SshEndpointOptions) {
    this.#options = options;
  }

  /** The port on which it listens or last listened; 0 before the first time. */
  get port(): number {
    return this.#port;
  }

  /** Whether it accepts connections. */
  get isOpen(): boolean {
    return this.#listener !== undefined;
  }

  /** The outcome of a login without a socket, as one over a socket has it; undefined if the key is refused. */
  loginDirectly(attempt: SshAttempt, command: string): (Outcome & { hostKey: string }) | undefined {
    if (!this.#options.mayLogin(attempt)) return undefined;
    const machine = this.#options.machine();
    const { stdout = '', ...outcome } = runOn(machine, command);
    return { ...outcome, stdout: `${this.#options.greeting()}${stdout}`, hostKey: machine.hostKey };
  }

  /** Listens on `port`, or on any other if it is taken. */
  open(port: number): Promise<void> {
    return this.#next(async () => {
      if (this.#listener !== undefined) return;
      const listener = createServer({ noDelay: true }, (socket) => this.#serve(socket));
      await listen(listener, port).catch(() => listen(listener, 0));
      this.#listener = listener;
      this.#port = (listener.address() as AddressInfo).port;
    });
  }

  /** Closes all connections and stops listening. */
  close(): Promise<void> {
    return this.#next(async () => {
      const listener = this.#listener;
      if (listener === undefined) return;
      this.#listener = undefined;
      const closed = new Promise((resolve) => listener.close(resolve));
      for (const socket of this.#sockets) socket.destroy();
      await closed;
    });
  }

  #next(step: () => Promise<void>): Promise<void> {
    this.#settled = this.#settled.then(step);
    return this.#settled;
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('error', () => {}).once('close', () => this.#sockets.delete(socket));
    const server = new ssh2.Server(
      { hostKeys: [this.#options.machine().hostKey] },
      (connection: Connection) => {
        connection.on('error', () => {});
        connection.on('authentication', (context) => this.#authenticate(context));
        connection.on('session', (accept) => {
          accept().once('exec', (acceptExec, _reject, { command }) => {
            const { stdout = '', ...outcome } = runOn(this.#options.machine(), command);
            finish(acceptExec(), { ...outcome, stdout: `${this.#options.greeting()}${stdout}` });
          });
        });
      },
    );
    server.injectSocket(socket);
  }

  #authenticate(context: AuthContext): void {
    const { username, method } = context;
    const key = context.method === 'publickey' ? context.key.data.toString('base64') : undefined;
    const isAllowed = this.#options.mayLogin({ username, method, ...(key !== undefined && { key }) });
    if (isAllowed && isSignatureGood(context)) context.accept();
    else context.reject(['publickey']);
  }
}

/** Whether the signature is valid. A query has no signature yet. */
function isSignatureGood(context: AuthContext): boolean {
  if (context.method !== 'publickey' || context.signature === undefined) return true;
  const key = ssh2.utils.parseKey(`${context.key.algo} ${context.key.data.toString('base64')}`);
  if (key instanceof Error || context.blob === undefined) return false;
  return key.verify(context.blob, context.signature, context.hashAlgo) === true;
}

function listen(listener: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    listener.once('error', reject);
    listener.listen({ host: SSH_HOST, port, exclusive: true }, () => {
      listener.off('error', reject);
      resolve();
    });
  });
}

function finish(channel: ServerChannel, { code, stdout = '', stderr = '' }: Outcome): void {
  channel.on('error', () => {});
  if (stdout !== '') channel.write(stdout);
  if (stderr !== '') channel.stderr.write(stderr);
  channel.exit(code);
  channel.end();
}

/**
 * Generates an Ed25519 key. ssh2 drops leading zero bytes of the public key, which makes it malformed; such a key is
 * generated again.
 */
export function newHostKey(): string {
  for (;;) {
    const pair = ssh2.utils.generateKeyPairSync('ed25519');
    const blob = Buffer.from(pair.public.split(' ')[1] ?? '', 'base64');
    if (blob.length === ED25519_BLOB_BYTES) return pair.private;
  }
}
