import type { Socket } from 'node:net';
import ssh2 from 'ssh2';
import { afterEach, describe, expect, it } from 'vitest';
import { closeAll, hostKey, listen, listenSsh, login, loginInVain, running } from './ssh-servers.fixture.ts';

afterEach(closeAll);

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
    await closeAll();
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
    ends?: 'in vain',
  ][] = [
    [
      'is silent',
      () => {},
      'handshake',
      /accepted the connection, but sent no SSH banner within 60000 ms$/,
      'in vain',
    ],
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
      /is no SSH server: what it sent is no SSH identification$/,
    ],
    [
      'talks HTTP',
      (socket) => socket.write('HTTP/1.1 400\r\n'),
      'handshake',
      /is no SSH server: what it sent is no SSH identification$/,
      'in vain',
    ],
    [
      'sends a banner without end',
      (socket) => {
        const pour = setInterval(() => socket.write('la \x1b[31m\r\n'.repeat(200)), 1);
        socket.once('close', () => clearInterval(pour));
      },
      'handshake',
      /is no SSH server: what it sent is no SSH identification$/,
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
      /^no key exchange with 127\.0\.0\.1:\d+ within 60000 ms$/,
      'in vain',
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
  it.each(raw)('that %s', async (_name, talk, rung, message, ends) => {
    const { promise: reached, resolve: reach } = Promise.withResolvers<void>();
    const port = await listen((socket) => {
      socket.once('data', () => reach());
      talk(socket);
    });
    expect(await (ends === undefined ? login(port) : loginInVain(port, reached))).toMatchObject({
      rung,
      message: expect.stringMatching(message),
    });
  });

  it.each(['127.0.0.1', 'localhost', '::1'])(
    'that a target names in a private network, at %s, without a connection to it',
    async (host) => {
      let connections = 0;
      const port = await listen(() => void connections++);
      expect(await login(port, { host, allowPrivate: false })).toMatchObject({
        message: expect.stringContaining('--allow-private connects to it all the same'),
      });
      expect(connections).toBe(0);
    },
  );

  it('that never answers to the key', async () => {
    const { promise: asked, resolve: ask } = Promise.withResolvers<void>();
    const port = await listenSsh({ authenticate: () => ask() });
    expect(await loginInVain(port, asked)).toMatchObject({
      rung: 'authenticate',
      message: 'no answer to the key for user ubuntu within 60000 ms',
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
    const { promise: started, resolve: start } = Promise.withResolvers<void>();
    const port = await listenSsh({
      onSession: running((channel) => void channel.write('starting', () => start())),
    });
    expect(await loginInVain(port, started)).toMatchObject({
      rung: 'execute',
      message: 'logged in, but the command did not end within 60000 ms',
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
