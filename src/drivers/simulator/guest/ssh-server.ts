import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import ssh2, { type AuthContext, type Connection, type Session } from 'ssh2';
import type { Clock } from '../../../ports/clock.ts';
import { isAuthorized } from './ssh-login.ts';

/** Time for a client to log in before it is disconnected, as with sshd's LoginGraceTime. */
const LOGIN_GRACE_MS = 30_000;
const MAX_CONNECTIONS = 64;
const MAX_SESSIONS_PER_CONNECTION = 10;
/** More than an agent full of keys needs. */
const MAX_AUTH_ATTEMPTS = 64;

export interface SshServerOptions {
  host: string;
  /** The port to listen on. If it is null or in use, the system chooses one. */
  port: number | null;
  /** PEM, OpenSSH format. */
  hostKey: string;
  username: string;
  authorizedKeys: readonly string[];
  /** `gone` aborts when the client's connection is closed. */
  onSession: (session: Session, gone: AbortSignal) => void;
}

export interface SshServer {
  readonly port: number;
  close(): Promise<void>;
}

/** Starts a machine's SSH server. It listens when the promise resolves. */
export async function openSshServer(options: SshServerOptions, clock: Clock): Promise<SshServer> {
  const sockets = new Set<Socket>();
  const listener = createServer({ noDelay: true }, (socket) => {
    if (sockets.size >= MAX_CONNECTIONS) {
      socket.destroy();
      return;
    }
    sockets.add(socket);
    const grace = clock.setTimer(LOGIN_GRACE_MS, () => socket.destroy());
    socket.once('close', () => {
      sockets.delete(socket);
      grace.cancel();
    });
    // One ssh2 server per socket, none of which listens: this links each connection to its socket.
    const ssh = new ssh2.Server({ hostKeys: [options.hostKey], ident: 'Berth_Simulator' }, (connection) => {
      connection.once('ready', () => grace.cancel());
      serve(connection, options);
    });
    ssh.injectSocket(socket);
  });
  const port = await listen(listener, options.host, options.port);
  return {
    port,
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

function serve(connection: Connection, options: SshServerOptions): void {
  // A client that disconnects or breaks the protocol affects no other client; its socket closes.
  connection.on('error', () => {});
  let attempts = 0;
  connection.on('authentication', (context: AuthContext) => {
    if (++attempts > MAX_AUTH_ATTEMPTS) connection.end();
    else if (context.username === options.username && isAuthorized(context, options.authorizedKeys))
      context.accept();
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
    options.onSession(session, gone.signal);
  });
}

async function listen(listener: Server, host: string, port: number | null): Promise<number> {
  try {
    await tryListen(listener, host, port ?? 0);
  } catch (error) {
    if (port === null || (error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    await tryListen(listener, host, 0);
  }
  return (listener.address() as AddressInfo).port;
}

function tryListen(listener: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    listener.once('error', reject);
    listener.listen({ host, port, exclusive: true }, () => {
      listener.off('error', reject);
      resolve();
    });
  });
}
