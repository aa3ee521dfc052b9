import { execFile } from 'node:child_process';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { promisify } from 'node:util';
import ssh2 from 'ssh2';
import { afterEach, describe, expect, it } from 'vitest';
import { PATIENCE_MS } from '../../test/support/time/until.ts';
import type { SshTarget } from '../ports/ssh-probe.ts';
import { createSshProbe } from './probe.ts';
import { publicKeys } from './public-keys.fixture.ts';
import { fingerprintOf } from './query.ts';

const everyKey = Object.values(publicKeys);
const ed25519 = publicKeys['ssh-ed25519'] ?? '';
const ecdsa = publicKeys['ecdsa-sha2-nistp256'] ?? '';
const probe = createSshProbe();
const patient = { connect: PATIENCE_MS, banner: PATIENCE_MS, handshake: PATIENCE_MS, auth: PATIENCE_MS };
/** Waits for one step only shortly. */
const hastyAt = (step: string) => createSshProbe({ stepTimeoutsMs: { ...patient, [step]: 300 } });

const cleanups: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
});

/** Starts a TCP server that runs `talk` on each connection; returns its address. */
async function listen(talk: (socket: Socket) => void): Promise<SshTarget> {
  const server: Server = createServer((socket) => {
    socket.on('error', () => {}).resume();
    talk(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  // `close` waits for every socket, so a socket that the probe leaks makes the test time out.
  cleanups.push(() => new Promise((resolve) => void server.close(() => resolve())));
  return { host: '127.0.0.1', port: (server.address() as AddressInfo).port, username: 'ubuntu' };
}

const newHostKey = (): string => ssh2.utils.generateKeyPairSync('ecdsa', { bits: 256 }).private;

type Authentication = (context: ssh2.AuthContext) => void;

/** Accepts publickey queries for `lines`; records the offered keys and counts signatures. */
function accepting(lines: readonly string[], seen: { offered: string[]; signed: number }): Authentication {
  const blobs = lines.map((line) => line.split(' ')[1]);
  return (context) => {
    if (context.method !== 'publickey') return context.reject(['publickey']);
    seen.offered.push(context.key.algo);
    if (context.signature !== undefined) seen.signed++;
    if (blobs.includes(context.key.data.toString('base64'))) context.accept();
    else context.reject(['publickey']);
  };
}

/** Starts an ssh2 server. Connection n gets host key n. */
async function listenSsh(authenticate: Authentication, hostKeys = [newHostKey()]): Promise<SshTarget> {
  const servers = hostKeys.map(
    (key) =>
      new ssh2.Server({ hostKeys: [key] }, (client) => {
        client.on('error', () => {});
        client.on('authentication', authenticate);
      }),
  );
  let connections = 0;
  return listen((socket) => {
    servers[Math.min(connections++, servers.length - 1)]?.injectSocket(socket);
  });
}

function fingerprintOfPrivate(pem: string): string {
  const key = ssh2.utils.parseKey(pem);
  if (key instanceof Error) throw key;
  return fingerprintOf(key.getPublicSSH());
}

describe('an SSH endpoint that works', () => {
  it('passes with every type of key, with one connection per key and without a signature', async () => {
    const seen = { offered: [], signed: 0 };
    const hostKey = newHostKey();
    const target = await listenSsh(accepting(everyKey, seen), [hostKey]);

    const result = await probe.probe(target, everyKey);

    expect(result).toEqual({ ok: true, hostKeyFingerprint: fingerprintOfPrivate(hostKey) });
    expect(seen).toMatchObject({ signed: 0, offered: { length: everyKey.length } });
  });

  it('passes without keys after the key exchange', async () => {
    const target = await listenSsh(() => expect.unreachable('no key was to be offered'));
    expect(await probe.probe(target, [])).toMatchObject({ ok: true });
  });

  it('passes when the host key is the pinned one', async () => {
    const hostKey = newHostKey();
    const target = await listenSsh(accepting([ed25519], { offered: [], signed: 0 }), [hostKey]);
    expect(await probe.probe(target, [ed25519], fingerprintOfPrivate(hostKey))).toMatchObject({ ok: true });
  });
});

describe('an SSH endpoint that fails', () => {
  it('names the refused key and its position [ssh-key-not-accepted]', async () => {
    const target = await listenSsh(accepting([ed25519], { offered: [], signed: 0 }));
    const fingerprint = fingerprintOf(Buffer.from(ecdsa.split(' ')[1] ?? '', 'base64'));

    expect(await probe.probe(target, [ed25519, ecdsa])).toEqual({
      ok: false,
      step: 'auth',
      keyIndex: 1,
      detail: `key 2 of 2 (ecdsa-sha2-nistp256 ${fingerprint}) was refused for user ubuntu`,
    });
  });

  it('fails at host_key when another machine answers [ssh-host-key-mismatch]', async () => {
    const target = await listenSsh(() => expect.unreachable('no key was to be offered'));
    const result = await probe.probe(target, [ed25519], 'SHA256:expected');
    expect(result).toMatchObject({ ok: false, step: 'host_key' });
    expect(result).toHaveProperty(
      'detail',
      expect.stringContaining('expected the host key SHA256:expected, got SHA256:'),
    );
  });

  it('fails at host_key when the second connection reaches another machine than the first', async () => {
    const target = await listenSsh(accepting(everyKey, { offered: [], signed: 0 }), [
      newHostKey(),
      newHostKey(),
    ]);
    expect(await probe.probe(target, [ed25519, ecdsa])).toMatchObject({ ok: false, step: 'host_key' });
  });

  it('fails at auth when the server accepts a key without a signature', async () => {
    const target = await listenSsh((context) => {
      const { accept } = Object.getPrototypeOf(Object.getPrototypeOf(context)) as ssh2.AuthContext;
      accept.call(context);
    });
    const result = await probe.probe(target, [ed25519]);
    expect(result).toMatchObject({ ok: false, step: 'auth', keyIndex: 0 });
    expect(result).toHaveProperty('detail', expect.stringContaining('without a signature'));
  });

  it('rejects text that is not a public key before it connects', async () => {
    const target = { host: '127.0.0.1', port: 1, username: 'ubuntu' };
    expect(await probe.probe(target, [ed25519, 'ssh-ed25519 AAAA'])).toMatchObject({
      ok: false,
      step: 'auth',
      keyIndex: 1,
      detail: expect.stringContaining('key 2 of 2 is not a public key'),
    });
  });
});

describe('a TCP endpoint without a working SSH server', () => {
  it('is refused when nothing listens there', async () => {
    const target = await listen(() => {});
    for (const cleanup of cleanups.splice(0)) await cleanup();
    expect(await probe.probe(target, [ed25519])).toEqual({
      ok: false,
      step: 'connect',
      detail: `connection refused by 127.0.0.1:${target.port}`,
    });
  });

  it('fails at connect for an impossible port', async () => {
    const target = { host: '127.0.0.1', port: 70_000, username: 'ubuntu' };
    expect(await probe.probe(target, [ed25519])).toMatchObject({ ok: false, step: 'connect' });
  });

  const identify = (socket: Socket): void => void socket.write('SSH-2.0-Test\r\n');
  const cases: [string, (socket: Socket) => void, string, string][] = [
    ['is silent', () => {}, 'banner', 'no SSH banner within 300 ms'],
    [
      'talks HTTP',
      (socket) => void socket.write('HTTP/1.1 400 Bad Request\r\n\r\n'),
      'banner',
      'no SSH banner within 300 ms',
    ],
    [
      'babbles',
      (socket) => void socket.write('la\r\n'.repeat(8192)),
      'banner',
      'the server sent text, but no SSH banner',
    ],
    [
      'closes',
      (socket) => void socket.end(),
      'banner',
      'the server closed the connection before its SSH banner',
    ],
    [
      'resets',
      (socket) => void socket.once('data', () => socket.resetAndDestroy()),
      'banner',
      'the server reset the connection before its SSH banner',
    ],
    ['stops after its banner', identify, 'handshake', 'no key exchange within 300 ms'],
    [
      'closes after its banner',
      (socket) => void socket.end('SSH-2.0-Test\r\n'),
      'handshake',
      'the server closed the connection during the key exchange',
    ],
  ];
  it.each(cases)('fails when it %s', async (_name, talk, step, detail) => {
    const target = await listen(talk);
    const result = await hastyAt(step).probe(target, [ed25519]);
    expect(result).toMatchObject({ ok: false, step });
    expect(result).toHaveProperty('detail', expect.stringContaining(detail));
  });

  it('fails at handshake when garbage follows the banner', async () => {
    const target = await listen(
      (socket) => void socket.write(`SSH-2.0-Test\r\n${'\u0000garbage'.repeat(64)}`),
    );
    expect(await probe.probe(target, [ed25519])).toMatchObject({ ok: false, step: 'handshake' });
  });

  it('fails at auth when the query is never answered', async () => {
    const target = await listenSsh(() => {});
    expect(await hastyAt('auth').probe(target, [ed25519])).toMatchObject({
      ok: false,
      step: 'auth',
      keyIndex: 0,
      detail: expect.stringContaining('got no answer within 300 ms for user ubuntu'),
    });
  });
});

describe('a forbidden address', () => {
  const forLoopback = createSshProbe({ isForbidden: (address) => /^(127\.|::1$)/.test(address) });

  it.each(['127.0.0.1', 'localhost', '2130706433'])('is never connected to: %s', async (host) => {
    let connections = 0;
    const { port } = await listen(() => connections++);
    expect(await forLoopback.probe({ host, port, username: 'ubuntu' }, [ed25519])).toEqual({
      ok: false,
      step: 'connect',
      detail: `${host} is a private or reserved address, which is not allowed`,
    });
    expect(connections).toBe(0);
  });

  it('is connected to if the given rule allows it', async () => {
    const target = await listenSsh(accepting([ed25519], { offered: [], signed: 0 }));
    const forNone = createSshProbe({ isForbidden: () => false });
    for (const host of ['127.0.0.1', 'localhost'])
      expect(await forNone.probe({ ...target, host }, [ed25519])).toMatchObject({ ok: true });
  });
});

describe('what a server sends', () => {
  const secret = 'EVIL-TEXT-OF-THE-SERVER';
  const disconnect = (socket: Socket): void => {
    // SSH_MSG_DISCONNECT (RFC 4253 §11.1), unencrypted, with a description that the server chooses.
    const body = Buffer.concat([
      Buffer.from([1, 0, 0, 0, 2, 0, 0, 0, secret.length]),
      Buffer.from(secret),
      Buffer.from([0, 0, 0, 0]),
    ]);
    const padding = 8 - ((body.length + 5) % 8) + 8;
    const head = Buffer.from([0, 0, 0, body.length + padding + 1, padding]);
    socket.write(Buffer.concat([Buffer.from('SSH-2.0-Test\r\n'), head, body, Buffer.alloc(padding)]));
  };
  const talks: [string, (socket: Socket) => void][] = [
    ['as a greeting', (socket) => void socket.write(`${secret}\r\n`)],
    ['as its software version', (socket) => void socket.end(`SSH-2.0-${secret}\r\n`)],
    ['as an invalid banner', (socket) => void socket.write(`SSH-9.9-${secret}\r\n`)],
    ['when it disconnects', disconnect],
  ];
  it.each(talks)('is in no result: %s', async (_name, talk) => {
    const target = await listen(talk);
    const result = await hastyAt('banner').probe(target, [ed25519]);
    expect(result.ok).toBe(false);
    expect(JSON.stringify(result)).not.toContain(secret);
  });
});

it('ends within its total time limit, at its current step', async () => {
  const target = await listen((socket) => void socket.write('SSH-2.0-Test\r\n'));
  expect(await probe.probe(target, [ed25519, ecdsa], undefined, 1_000)).toMatchObject({
    ok: false,
    step: 'handshake',
    detail: expect.stringMatching(/^no key exchange within (\d{1,3}|1000) ms$/),
  });
});

it('leaves no socket and no timer that would keep a process alive', async () => {
  const target = await listenSsh(accepting([ed25519], { offered: [], signed: 0 }));
  const script = `
    const { createSshProbe } = await import(${JSON.stringify(new URL('./probe.ts', import.meta.url).href)});
    const hour = 3_600_000;
    const probe = createSshProbe({ stepTimeoutsMs: { connect: hour, banner: hour, handshake: hour, auth: hour } });
    const result = await probe.probe(${JSON.stringify(target)}, [${JSON.stringify(ed25519)}]);
    process.stdout.write(JSON.stringify(result));
  `;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], {
    timeout: PATIENCE_MS,
  });
  expect(JSON.parse(stdout)).toMatchObject({ ok: true });
});
