import ssh2 from 'ssh2';
import { afterEach, describe, expect, it } from 'vitest';
import {
  client,
  closeAll,
  fingerprintOfHost,
  listen,
  listenSsh,
  login,
  running,
} from './ssh-servers.fixture.ts';

afterEach(closeAll);

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

it('says so when the private key is none', async () => {
  const port = await listen(() => {});
  expect(await login(port, { privateKey: 'no key' })).toMatchObject({
    message: expect.stringMatching(/^the private key cannot be read: /),
  });
});

it.each([
  ['ecdsa', 'ecdsa-sha2-nistp256'],
  ['rsa', 'ssh-rsa'],
] as const)('makes key pairs of type %s', (type, name) => {
  const { publicKey, privateKey } = client.newKeyPair('berth conformance', type);
  const key = ssh2.utils.parseKey(privateKey);
  if (key instanceof Error) throw key;
  expect(publicKey).toBe(`${name} ${key.getPublicSSH().toString('base64')} berth conformance`);
});

it('makes complete key pairs', () => {
  // ssh2 makes one malformed key in 256.
  for (let drawn = 0; drawn < 1_000; drawn++) {
    const { publicKey, privateKey } = client.newKeyPair('berth conformance');
    const key = ssh2.utils.parseKey(privateKey);
    if (key instanceof Error) throw key;
    expect(publicKey).toBe(`ssh-ed25519 ${key.getPublicSSH().toString('base64')} berth conformance`);
  }
});
