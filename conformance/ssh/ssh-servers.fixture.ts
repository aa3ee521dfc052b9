import { createHash } from 'node:crypto';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import ssh2, { type AuthContext, type ServerChannel, type Session } from 'ssh2';
import { vi } from 'vitest';
import type { SshLogin, SshOutcome } from './ssh-client.ts';
import { ssh2Client } from './ssh2-client.ts';

export const client = ssh2Client();
const user = client.newKeyPair('user');
export const hostKey = ssh2.utils.generateKeyPairSync('ecdsa', { bits: 256 });

/** Time limit of each login here. Only {@link loginInVain} waits for its end. */
const TIMEOUT_MS = 60_000;

const cleanups: (() => Promise<void>)[] = [];

/** Call it after each test. */
export async function closeAll(): Promise<void> {
  for (const cleanup of cleanups.splice(0)) await cleanup();
}

/** Starts a TCP server that passes each connection to `talk`. Returns its port. */
export async function listen(talk: (socket: Socket) => void): Promise<number> {
  const server = createServer((socket) => {
    socket.on('error', () => {}).resume();
    talk(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  // Ends only when the client has closed each of its sockets. A leaked socket makes the test time out.
  cleanups.push(() => new Promise((resolve) => void server.close(() => resolve())));
  return (server.address() as AddressInfo).port;
}

interface SshServerOptions {
  authenticate?: (context: AuthContext) => void;
  onSession?: (session: Session) => void;
  onReady?: (connection: ssh2.Connection) => void;
  config?: Partial<ssh2.ServerConfig>;
}

/** Starts an SSH server that accepts `user` and runs no command, unless the options differ. */
export async function listenSsh(options: SshServerOptions = {}): Promise<number> {
  const config = { hostKeys: [hostKey.private], ...options.config };
  const server = new ssh2.Server(config, (connection) => {
    connection.on('error', () => {});
    connection.on('authentication', options.authenticate ?? acceptUser);
    connection.on('session', (accept) => options.onSession?.(accept()));
    connection.on('ready', () => options.onReady?.(connection));
  });
  return listen((socket) => void server.injectSocket(socket));
}

function acceptUser(context: AuthContext): void {
  const blob = user.publicKey.split(' ')[1];
  const isUser = context.method === 'publickey' && context.key.data.toString('base64') === blob;
  if (isUser) context.accept();
  else context.reject(['publickey', 'password']);
}

/** Runs `run` for each command. */
export function running(run: (channel: ServerChannel, command: string) => void): (session: Session) => void {
  return (session) => session.on('exec', (accept, _reject, { command }) => run(accept(), command));
}

/** Logs in as `ubuntu`, with the key of `user`. */
export function login(port: number, options: Partial<SshLogin> = {}): Promise<SshOutcome> {
  const common = {
    host: '127.0.0.1',
    port,
    username: 'ubuntu',
    privateKey: user.privateKey,
    timeoutMs: TIMEOUT_MS,
    allowPrivate: true,
  };
  return client.login({ ...common, ...options });
}

/** A login whose time is over as soon as `reached` settles and the data that the server sent by then has arrived. */
export async function loginInVain(port: number, reached: Promise<void>): Promise<SshOutcome> {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  try {
    const outcome = login(port);
    await reached;
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
    vi.advanceTimersByTime(TIMEOUT_MS);
    return await outcome;
  } finally {
    vi.useRealTimers();
  }
}

export function fingerprintOfHost(): string {
  const key = ssh2.utils.parseKey(hostKey.public);
  if (key instanceof Error) throw key;
  return `SHA256:${createHash('sha256').update(key.getPublicSSH()).digest('base64').replace('=', '')}`;
}
