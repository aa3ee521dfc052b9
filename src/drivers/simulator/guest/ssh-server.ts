import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import ssh2, { type AuthContext, type Connection } from 'ssh2';
import { clearTimeout, setTimeout } from '../../../ports/timers.ts';
import { GUEST_ADDRESS, GUEST_USER, type Guest } from './guest.ts';
import { serveGuestSession } from './session.ts';

/** Time for a client to log in before it is disconnected, as with sshd's LoginGraceTime. */
const LOGIN_GRACE_MS = 30_000;
const MAX_CONNECTIONS = 64;
const MAX_SESSIONS_PER_CONNECTION = 10;
/** More than an agent full of keys needs. */
const MAX_AUTH_ATTEMPTS = 64;

export interface SshServerOptions {
  /** The port to listen on. If it is null or in use, the system chooses one. */
  port: number | null;
  /** PEM, OpenSSH format. */
  hostKey: string;
  authorizedKeys: readonly string[];
}

export interface SshServer {
  readonly port: number;
  /** Ends its sessions and their commands. */
  close(): Promise<void>;
}

/** Starts a machine's SSH server. It listens when the promise resolves. */
export async function openSshServer(options: SshServerOptions, guest: Guest): Promise<SshServer> {
  const { port, hostKey, authorizedKeys } = options;
  const sockets = new Set<Socket>();
  const listener = createServer({ noDelay: true }, (socket) => {
    if (sockets.size >= MAX_CONNECTIONS) {
      socket.destroy();
      return;
    }
    sockets.add(socket);
    const grace = setTimeout(() => socket.destroy(), LOGIN_GRACE_MS);
    socket.once('close', () => {
      sockets.delete(socket);
      clearTimeout(grace);
    });
    // One ssh2 server per socket, none of which listens: this links each connection to its socket.
    const ssh = new ssh2.Server({ hostKeys: [hostKey], ident: 'Berth_Simulator' }, (connection) => {
      connection.once('ready', () => clearTimeout(grace));
      serve(connection, authorizedKeys, guest);
    });
    ssh.injectSocket(socket);
  });
  await listen(listener, port);
  return {
    port: (listener.address() as AddressInfo).port,
    async close() {
      const closed = [listener, ...sockets].map(
        (end) => new Promise((resolve) => end.once('close', resolve)),
      );
      listener.close();
      for (const socket of sockets) socket.destroy();
      await Promise.all(closed);
    },
  };
}

function serve(connection: Connection, authorizedKeys: readonly string[], guest: Guest): void {
  // A client that disconnects or breaks the protocol affects no other client; its socket closes.
  connection.on('error', () => {});
  let attempts = 0;
  connection.on('authentication', (context) => {
    if (++attempts > MAX_AUTH_ATTEMPTS) connection.end();
    else if (context.username === GUEST_USER && isAuthorized(context, authorizedKeys)) context.accept();
    else context.reject(['publickey']);
  });
  const gone = new AbortController();
  connection.once('close', () => gone.abort());
  let sessions = 0;
  connection.on('session', (accept, reject) => {
    if (sessions >= MAX_SESSIONS_PER_CONNECTION) {
      reject();
      return;
    }
    sessions++;
    const session = accept();
    session.once('close', () => {
      sessions--;
    });
    serveGuestSession(session, guest, gone.signal);
  });
}

/**
 * Whether to accept a key. A query needs a key that equals one of `authorizedKeys` byte for byte; a login needs a valid
 * signature too. Signatures of security keys (`sk-…`) are unknown to ssh2, so these log in nowhere.
 */
function isAuthorized(context: AuthContext, authorizedKeys: readonly string[]): boolean {
  if (context.method !== 'publickey') return false;
  const { key, signature, blob, hashAlgo } = context;
  const offered = `${key.algo} ${key.data.toString('base64')}`;
  const line = authorizedKeys.find((known) => known.split(/\s+/, 2).join(' ') === offered);
  // Current sshd refuses the plain `ssh-rsa` algorithm (SHA-1), for which ssh2 gives no hash.
  if (line === undefined || (key.algo === 'ssh-rsa' && hashAlgo === undefined)) return false;
  if (signature === undefined) return true;
  const parsed = ssh2.utils.parseKey(line);
  return !(parsed instanceof Error) && parsed.verify(blob as Buffer, signature, hashAlgo) === true;
}

async function listen(listener: Server, port: number | null): Promise<void> {
  try {
    await tryListen(listener, port ?? 0);
  } catch (error) {
    if (port === null || (error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    await tryListen(listener, 0);
  }
}

function tryListen(listener: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    listener.once('error', reject);
    listener.listen({ host: GUEST_ADDRESS, port, exclusive: true }, () => {
      listener.off('error', reject);
      resolve();
    });
  });
}
