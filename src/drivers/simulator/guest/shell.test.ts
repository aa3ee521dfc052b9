import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { VirtualClock } from '../../../../test/support/time/virtual-clock.ts';
import { GuestFiles } from '../platform/disk-files.ts';
import { SimulatorState } from '../platform/state.ts';
import { machineSpec } from '../simulator.fixture.ts';
import type { Guest } from './guest.ts';
import { GuestShell } from './shell.ts';

let state: SimulatorState;
let guest: Guest;

beforeEach(() => {
  const clock = new VirtualClock();
  state = new SimulatorState(':memory:');
  guest = {
    files: new GuestFiles(state, 'berth-1', () => []),
    clock,
    facts: () => ({ spec: machineSpec(), bootedAt: clock.now(), cloudInit: 'done', volumes: [] }),
    powerOff: () => {},
    reboot: () => {},
  };
});
afterEach(() => state.close());

async function run(text: string, input = ''): Promise<{ status: number; out: string; err: string }> {
  let out = '';
  let err = '';
  const streams = {
    stdin: async () => input,
    out: (chunk: string) => {
      out += chunk;
    },
    err: (chunk: string) => {
      err += chunk;
    },
    drained: async () => {},
  };
  const status = await new GuestShell(guest).run(text, streams, new AbortController().signal);
  return { status, out, err };
}

describe('the shell prints', () => {
  it.each([
    ['echo a   b', 'a b\n'],
    [`echo 'a   b' "c  d"`, 'a   b c  d\n'],
    [`echo "it's" 'say "hi"' \\"x\\"`, 'it\'s say "hi" "x"\n'],
    ['echo one && echo two', 'one\ntwo\n'],
    ['false && echo no; echo yes', 'yes\n'],
    ['true && false && echo no; echo yes', 'yes\n'],
    [`echo $USER "$HOME" '*' ~ \\$x`, '$USER $HOME * ~ $x\n'],
    [`echo "a\\"b\\\\c" 'd'e"f"`, 'a"b\\c def\n'],
    ['echo -n a; echo b', 'ab\n'],
    ['echo a > f; echo b >> f; cat f', 'a\nb\n'],
    ['echo a>f; cat f', 'a\n'],
    ['> empty; cat empty; stat -c %s empty', '0\n'],
    ['echo gone > /dev/null', ''],
    ['cd /tmp && pwd; cd; pwd', '/tmp\n/home/ubuntu\n'],
    ['echo x > a/b/c && ls a/b', 'c\n'],
    ['echo x > a; stat -c %a:%U:%G:%s a', '644:ubuntu:ubuntu:2\n'],
    ['echo one > f; rm f; ls', ''],
    ['echo one > f; wc -c f', '4 /home/ubuntu/f\n'],
    ['tail -c 9 /proc/mounts', '4 rw 0 0\n'],
    ['cat /proc/meminfo /proc/mounts', 'MemTotal: 62500000 kB\n/dev/vda / ext4 rw 0 0\n'],
    ['lsblk; lsblk -dbnro NAME,TYPE,SIZE', 'vda  100G  disk  /\nvda disk 100000000000\n'],
    ['df -Pk', '/dev/vda 97656250 0 97656250 0% /\n'],
    ['nvidia-smi --query-gpu=name,memory.total --format=csv,noheader', 'NVIDIA H100, [N/A]\n'.repeat(2)],
    ['sudo whoami; whoami', 'root\nubuntu\n'],
    ['echo a\n\necho b\n', 'a\nb\n'],
    ['exit 4; echo no', ''],
    ['', ''],
  ])('%j', async (text, expected) => {
    expect((await run(text)).out).toBe(expected);
  });

  it('what it reads', async () => {
    expect((await run('cat', 'input')).out).toBe('input');
  });
});

describe('the shell fails', () => {
  it.each([
    ['nope', 127, 'bash: nope: command not found\n'],
    ['sudo nope', 1, 'sudo: nope: command not found\n'],
    ['exit 7', 7, ''],
    ['cat none', 1, 'cat: none: No such file or directory\n'],
    ['cat /etc', 1, 'cat: /etc: Is a directory\n'],
    ['ls /none', 1, 'ls: /none: No such file or directory\n'],
    ['echo x > /etc', 1, 'bash: Is a directory\n'],
    ['rm /etc/none', 1, 'rm: /etc/none: No such file or directory\n'],
    ['echo "open', 2, expect.stringContaining('cannot read "\\"open"')],
    ['&& echo x', 2, 'bash: syntax error: a command is missing at `&&`\n'],
    ['echo x | wc', 2, expect.stringMatching(/^bash: cannot read "\| wc"/)],
    ['sleep 5 & true', 2, expect.stringMatching(/^bash: cannot read "& true"/)],
    ['echo x &&', 2, 'bash: syntax error: a command is missing at `&&`\n'],
    ['echo x > > f', 2, expect.stringContaining('cannot read "> > f"')],
    ['sleep 99999999', 1, expect.stringContaining('at most 3600')],
    ['echo x >', 2, expect.stringContaining('cannot read ">"')],
    ['constructor', 127, 'bash: constructor: command not found\n'],
    [`echo ${'x'.repeat(70_000)}`, 2, 'bash: command line too long\n'],
    [`echo ${'x '.repeat(300)}`, 2, 'bash: more than 256 words in a command\n'],
  ])('%.20j with %i', async (text, status, err) => {
    expect(await run(text)).toMatchObject({ status, err });
  });

  it('never by an exception, for any input', async () => {
    const fragments = [
      'echo',
      'cat',
      'ls',
      '-l',
      'sudo',
      '&&',
      ';',
      '|',
      '>',
      '>>',
      "'",
      '"',
      '\\',
      '$',
      '~',
      '/',
      '..',
      '\n',
      '*',
      'x',
      ' ',
      '\u0000',
      '${',
      'é',
    ];
    await fc.assert(
      fc.asyncProperty(fc.array(fc.constantFrom(...fragments), { maxLength: 24 }), async (parts) => {
        const { status } = await run(parts.join(''));
        expect(status).toBeGreaterThanOrEqual(0);
      }),
      { numRuns: 300 },
    );
  });
});

it('ends an interrupted sleep and the commands after it', async () => {
  const interrupt = new AbortController();
  const written: string[] = [];
  const streams = {
    stdin: async () => '',
    out: (text: string) => void written.push(text),
    err: () => {},
    drained: async () => {},
  };
  const running = new GuestShell(guest).run('sleep 60; echo no', streams, interrupt.signal);
  interrupt.abort();
  expect(await running).toBe(130);
  expect(written).toEqual([]);
});

describe('a guest cannot be made to grow', () => {
  it('by the output of a command, which ends the line at the limit', async () => {
    await run(`echo ${'x'.repeat(60_000)} > f`);
    const { status, out, err } = await run('cat f f f f f f f f f f; echo no');
    expect(out.length).toBeLessThanOrEqual(512 * 1024);
    expect({ status, err }).toEqual({ status: 2, err: expect.stringContaining('writes at most') });
  });

  it('by the output of many commands in one line, or by a format', async () => {
    await run(`echo ${'x'.repeat(60_000)} > f`);
    const lines = ['cat f;'.repeat(1_000), `stat -c ${'%n'.repeat(1_000)} ${'d/'.repeat(1_000)}f`];
    await run(`cat f > ${'d/'.repeat(1_000)}f`);
    for (const line of lines) {
      const { status, out } = await run(line);
      expect({ status, isBounded: out.length <= 512 * 1024 }).toEqual({ status: 2, isBounded: true });
    }
  });

  it('by doubling a file, or by many of them', async () => {
    await run(`echo ${'x'.repeat(60_000)} > a`);
    const doubling = Array.from({ length: 30 }, () => 'cat a a > b && cat b > a').join('; ');
    expect((await run(doubling)).status).toBe(2);
    expect((await run('stat -c %s a b')).out.split('\n').every((size) => Number(size) <= 512 * 1024)).toBe(
      true,
    );
    let last = { status: 0, out: '', err: '' };
    for (let round = 0; round < 5; round++)
      last = await run(Array.from({ length: 250 }, (_, index) => `> f-${round}-${index}`).join('; '));
    expect(last).toMatchObject({ status: 1, err: expect.stringContaining('No space left on device') });
  });

  it('by assignments and expansion, which are not supported', async () => {
    expect(await run(`A=x; ${'A=$A$A;'.repeat(40)} echo $A`)).toMatchObject({ status: 0, out: '$A\n' });
  });

  it('while its output is not read: the next command waits', async () => {
    const written: string[] = [];
    const reader = Promise.withResolvers<void>();
    const streams = {
      stdin: async () => '',
      out: (text: string) => void written.push(text),
      err: () => {},
      drained: () => (written.length === 0 ? Promise.resolve() : reader.promise),
    };
    const running = new GuestShell(guest).run('echo a; echo b', streams, new AbortController().signal);
    for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
    expect(written).toEqual(['a\n']);
    reader.resolve();
    expect(await running).toBe(0);
    expect(written).toEqual(['a\n', 'b\n']);
  });
});
