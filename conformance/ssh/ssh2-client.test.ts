import { createHash } from 'node:crypto';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import ssh2, { type AuthContext, type ServerChannel, type Session } from 'ssh2';
import { afterEach, describe, expect, it } from 'vitest';
import type { SshLogin, SshOutcome } from './ssh-client.ts';
import { ssh2Client } from './ssh2-client.ts';

const client = ssh2Client();
const user = client.newKeyPair('user');
const hostKey = ssh2.utils.generateKeyPairSync('ecdsa', { bits: 256 });

const cleanups: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
});

/** A TCP server whose connections `talk`; its port. */
async function listen(talk: (socket: Socket) => void): Promise<number> {
  const server = createServer((socket) => {
    socket.on('error', () => {}).resume();
    talk(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  // Ends only when the client has closed each of its sockets: one that it leaks times the test out.
  cleanups.push(() => new Promise((resolve) => void server.close(() => resolve())));
  return (server.address() as AddressInfo).port;
}

interface SshServerOptions {
  authenticate?: (context: AuthContext) => void;
  onSession?: (session: Session) => void;
  onReady?: (connection: ssh2.Connection) => void;
  config?: Partial<ssh2.ServerConfig>;
}

/** An SSH server that lets `user` in and runs nothing, unless told otherwise. */
async function listenSsh(options: SshServerOptions = {}): Promise<number> {
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
function running(run: (channel: ServerChannel, command: string) => void): (session: Session) => void {
  return (session) => session.on('exec', (accept, _reject, { command }) => run(accept(), command));
}

function login(port: number, options: Partial<SshLogin> = {}): Promise<SshOutcome> {
  const common = {
    host: '127.0.0.1',
    port,
    username: 'ubuntu',
    privateKey: user.privateKey,
    timeoutMs: 5_000,
  };
  return client.login({ ...common, ...options });
}

function fingerprintOfHost(): string {
  const key = ssh2.utils.parseKey(hostKey.public);
  if (key instanceof Error) throw key;
  return `SHA256:${createHash('sha256').update(key.getPublicSSH()).digest('base64').replace('=', '')}`;
}

describe('a login', () => {
  it('runs `true` and gives its exit code, with the host key as OpenSSH prints it', async () => {
    const commands: string[] = [];
    const port = await listenSsh({
      onSession: running((channel, command) => {
        commands.push(command);
        channel.exit(0);
        channel.end();
      }),
    });
    expect(await login(port)).toEqual({
      rung: 'done',
      exitCode: 0,
      stdout: '',
      hostKey: fingerprintOfHost(),
      totalMs: expect.any(Number),
    });
    expect(commands).toEqual(['true']);
  });

  it('gives what the command wrote to stdout, and how it ended', async () => {
    const port = await listenSsh({
      onSession: running((channel, command) => {
        channel.stderr.write('ignored');
        channel.write(`${command}: für`);
        channel.exit(3);
        channel.end();
      }),
    });
    expect(await login(port, { command: 'cat /etc/x' })).toMatchObject({
      rung: 'done',
      exitCode: 3,
      stdout: 'cat /etc/x: für',
    });
  });

  it('gives the first 4 KiB of stdout', async () => {
    const port = await listenSsh({
      onSession: running((channel) => {
        channel.write('x'.repeat(100_000));
        channel.exit(0);
        channel.end();
      }),
    });
    const outcome = await login(port);
    expect(outcome.rung).toBe('done');
    expect(outcome.stdout).toBe('x'.repeat(4096));
  });

  it('says which signal ended the command', async () => {
    const port = await listenSsh({
      onSession: running((channel) => {
        channel.exit('KILL');
        channel.end();
      }),
    });
    const outcome = await login(port);
    expect(outcome).toMatchObject({ rung: 'done', message: 'the command was ended by SIGKILL' });
    expect(outcome).not.toHaveProperty('exitCode');
  });

  it('is done when the server drops the connection once the command has ended', async () => {
    let connection: ssh2.Connection | undefined;
    const port = await listenSsh({
      onSession: running((channel) => {
        channel.write('out');
        channel.exit(0);
        setImmediate(() => connection?.end());
      }),
      onReady: (ready) => {
        connection = ready;
      },
    });
    expect(await login(port)).toMatchObject({ rung: 'done', exitCode: 0, stdout: 'out' });
  });

  it('offers one key, and no other method', async () => {
    const offered: string[] = [];
    const port = await listenSsh({
      authenticate: (context) => {
        offered.push(context.method);
        context.reject(['publickey', 'password', 'keyboard-interactive']);
      },
    });
    await login(port);
    expect(offered).toEqual(['publickey']);
  });
});

describe('a login that is refused', () => {
  it('fails at authenticate, with the methods that the server would take', async () => {
    const port = await listenSsh();
    const stranger = client.newKeyPair('stranger');
    expect(await login(port, { privateKey: stranger.privateKey })).toMatchObject({
      rung: 'authenticate',
      message: 'the server refused the key for user ubuntu; it accepts: publickey, password',
      hostKey: fingerprintOfHost(),
    });
  });

  it('fails at authenticate where the key is not enough', async () => {
    const port = await listenSsh({ authenticate: (context) => context.reject(['password'], true) });
    expect(await login(port)).toMatchObject({
      rung: 'authenticate',
      message: 'the server accepted the key for user ubuntu, but wants more: password',
    });
  });

  it('fails at execute where no session is opened', async () => {
    const port = await listenSsh({
      onReady: (connection) =>
        connection.removeAllListeners('session').on('session', (_accept, reject) => reject()),
    });
    expect(await login(port)).toMatchObject({
      rung: 'execute',
      message: expect.stringMatching(/^logged in, but the server opened no session/),
    });
  });

  it('fails at execute where the command is refused', async () => {
    const port = await listenSsh({
      onSession: (session) => session.on('exec', (_accept, reject) => reject()),
    });
    expect(await login(port)).toMatchObject({
      rung: 'execute',
      message: 'logged in, but the server refused to run a command',
    });
  });

  it('fails at handshake where there is no common algorithm', async () => {
    const port = await listenSsh({ config: { algorithms: { cipher: ['3des-cbc'] } } });
    expect(await login(port)).toMatchObject({
      rung: 'handshake',
      message: expect.stringMatching(/^no common algorithms with the server: no matching .* cipher$/),
    });
  });
});

describe('a target that is not there', () => {
  it('fails at resolve where the name does not exist', async () => {
    expect(await login(22, { host: 'nowhere.invalid' })).toMatchObject({
      rung: 'resolve',
      message: expect.stringMatching(/^the name nowhere\.invalid does not resolve \(E/),
    });
  });

  it('fails at resolve where there is no name, and does not log in to this machine', async () => {
    const port = await listen(() => expect.unreachable());
    expect(await login(port, { host: '' })).toMatchObject({
      rung: 'resolve',
      message: 'there is no host to connect to',
    });
  });

  it('fails at connect where the port is closed', async () => {
    const port = await listen(() => {});
    for (const cleanup of cleanups.splice(0)) await cleanup();
    expect(await login(port)).toMatchObject({
      rung: 'connect',
      message: `connection refused by 127.0.0.1:${port}`,
    });
  });

  it('fails at connect for a port that cannot be', async () => {
    expect(await login(70_000)).toMatchObject({ rung: 'connect', message: expect.stringContaining('70000') });
  });
});

describe('a hostile or broken target', () => {
  const identify = (socket: Socket): boolean => socket.write('SSH-2.0-Test\r\n');
  const raw: [
    name: string,
    talk: (socket: Socket) => void,
    rung: string,
    message: RegExp,
    timeoutMs?: number,
  ][] = [
    ['is silent', () => {}, 'handshake', /accepted the connection, but sent no SSH banner within 80 ms$/, 80],
    [
      'closes',
      (socket) => socket.end(),
      'handshake',
      /^the server closed the connection before its SSH banner$/,
    ],
    [
      'resets',
      (socket) => socket.once('data', () => socket.resetAndDestroy()),
      'handshake',
      /^the server reset the connection before its SSH banner$/,
    ],
    [
      'talks HTTP and closes',
      (socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'),
      'handshake',
      /is no SSH server: it sent "HTTP\/1\.1 400 Bad Request\\r\\n/,
    ],
    [
      'talks HTTP',
      (socket) => socket.write('HTTP/1.1 400\r\n'),
      'handshake',
      /is no SSH server: it sent "HTTP/,
      150,
    ],
    [
      'sends a banner without end',
      (socket) => {
        const pour = setInterval(() => socket.write('la \x1b[31m\r\n'.repeat(200)), 1);
        socket.once('close', () => clearInterval(pour));
      },
      'handshake',
      /is no SSH server: it sent "la \\x1b/,
    ],
    [
      'sends one line without end',
      (socket) => socket.write('x'.repeat(100_000)),
      'handshake',
      /is no SSH server/,
    ],
    ['speaks SSH 1', (socket) => socket.end('SSH-1.5-old\r\n'), 'handshake', /^no key exchange: /],
    [
      'stops after its banner',
      identify,
      'handshake',
      /^no key exchange with 127\.0\.0\.1:\d+ within 150 ms$/,
      150,
    ],
    [
      'closes after its banner',
      (socket) => socket.end('SSH-2.0-Test\r\n'),
      'handshake',
      /^the server closed the connection during the key exchange$/,
    ],
    [
      'sends garbage after its banner',
      (socket) => socket.write(`SSH-2.0-Test\r\n${'\0garbage'.repeat(64)}`),
      'handshake',
      /^no key exchange/,
    ],
  ];
  it.each(raw)('that %s', async (_name, talk, rung, message, timeoutMs = 5_000) => {
    const port = await listen((socket) => void talk(socket));
    expect(await login(port, { timeoutMs })).toMatchObject({
      rung,
      message: expect.stringMatching(message),
    });
  });

  it('that never answers to the key', async () => {
    const port = await listenSsh({ authenticate: () => {} });
    expect(await login(port, { timeoutMs: 200 })).toMatchObject({
      rung: 'authenticate',
      message: 'no answer to the key for user ubuntu within 200 ms',
    });
  });

  it('that closes instead of an answer to the key', async () => {
    const port = await listen((socket) => {
      const server = new ssh2.Server({ hostKeys: [hostKey.private] }, (connection) => {
        connection.on('error', () => {}).on('authentication', () => socket.end());
      });
      server.injectSocket(socket);
    });
    expect(await login(port)).toMatchObject({
      rung: 'authenticate',
      message: 'the server closed the connection during the authentication',
    });
  });

  it('whose command never ends', async () => {
    const port = await listenSsh({ onSession: running((channel) => channel.write('starting')) });
    expect(await login(port, { timeoutMs: 200 })).toMatchObject({
      rung: 'execute',
      message: 'logged in, but the command did not end within 200 ms',
    });
  });

  it('whose connection is lost before the command has ended', async () => {
    let connection: ssh2.Connection | undefined;
    const port = await listenSsh({
      onReady: (ready) => {
        connection = ready;
      },
      onSession: running(() => setImmediate(() => connection?.end())),
    });
    expect(await login(port)).toMatchObject({
      rung: 'execute',
      message: 'the server closed the connection before the command had ended',
    });
  });

  it('whose command writes without end', async () => {
    const port = await listenSsh({
      onSession: running((channel) => {
        const pour = (): void => {
          while (channel.writable && channel.write('x'.repeat(32_768)));
        };
        channel.on('drain', pour).on('error', () => {});
        pour();
      }),
    });
    expect(await login(port)).toMatchObject({
      rung: 'execute',
      message: 'logged in, but the command wrote more than 4 MiB and was cut off',
    });
  });
});

it('ends when the run is interrupted', async () => {
  const abort = new AbortController();
  const port = await listen(() => abort.abort());
  expect(await login(port, { signal: abort.signal })).toMatchObject({ message: 'the run was interrupted' });
  expect(await login(port, { signal: abort.signal })).toMatchObject({
    rung: 'resolve',
    message: 'the run was interrupted',
  });
});

it('says so when the private key is none', async () => {
  const port = await listen(() => {});
  expect(await login(port, { privateKey: 'no key' })).toMatchObject({
    message: expect.stringMatching(/^the private key cannot be read: /),
  });
});

it('makes key pairs of which each one is whole', () => {
  // One in 256 of those that ssh2 makes is not.
  for (let drawn = 0; drawn < 1_000; drawn++) {
    const { publicKey, privateKey } = client.newKeyPair('berth conformance');
    const key = ssh2.utils.parseKey(privateKey);
    if (key instanceof Error) throw key;
    expect(publicKey).toBe(`ssh-ed25519 ${key.getPublicSSH().toString('base64')} berth conformance`);
  }
});
