import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { VirtualClock } from '../../../test/support/virtual-clock.ts';
import type { Guest } from './guest.ts';
import { GuestFiles } from './guest-files.ts';
import { GuestShell } from './guest-shell.ts';
import { machineSpec } from './simulator.fixture.ts';
import { SimulatorState } from './state.ts';

let state: SimulatorState;
let guest: Guest;

beforeEach(() => {
  const clock = new VirtualClock();
  state = new SimulatorState(':memory:', clock);
  guest = {
    facts: () => ({
      spec: machineSpec(),
      bootedAt: clock.now(),
      privateIp: '10.0.0.1',
      cloudInit: 'done',
      volumes: [],
    }),
    files: new GuestFiles(
      state,
      'berth-1',
      () => [],
      () => clock.now(),
    ),
    clock,
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
    ['false || echo yes', 'yes\n'],
    ['true || echo no && echo yes', 'yes\n'],
    ['false; echo $?', '1\n'],
    [`echo "$USER" '$USER' \${HOME} ~`, 'ubuntu $USER /home/ubuntu /home/ubuntu\n'],
    ['NAME=x; echo $NAME', 'x\n'],
    ['echo -n a; echo b', 'ab\n'],
    ['echo a > f; echo b >> f; cat f', 'a\nb\n'],
    ['echo a > f; cat < f', 'a\n'],
    ['nope 2> errors; cat errors', 'bash: nope: command not found\n'],
    ['nope > all 2>&1; cat all', 'bash: nope: command not found\n'],
    ['echo gone > /dev/null', ''],
    ['cd /tmp && pwd; cd; pwd', '/tmp\n/home/ubuntu\n'],
    ['mkdir -p a/b && touch a/b/c && ls a/b', 'c\n'],
    ['echo hi > x; [ -f x ] && echo file; test -d x || echo no directory', 'file\nno directory\n'],
    ['echo b > x; echo a >> x; cat x | grep a | wc -l', '1\n'],
    ['sudo whoami; whoami', 'root\nubuntu\n'],
    ["bash -c 'echo nested; whoami'", 'nested\nubuntu\n'],
    ['echo a # comment', 'a\n'],
    ['echo a\n\necho b\n', 'a\nb\n'],
    ['echo a &&\necho b', 'a\nb\n'],
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
    ['ls /none', 1, "ls: cannot access '/none': No such file or directory\n"],
    ['echo x > /etc/file', 1, 'bash: /etc/file: Permission denied\n'],
    ['echo x > /none/file', 1, 'bash: /none/file: No such file or directory\n'],
    ['rm /etc/os-release', 1, "rm: cannot remove '/etc/os-release': No such file or directory\n"],
    ['echo "open', 2, 'bash: unexpected EOF while looking for matching `"\'\n'],
    ['&& echo x', 2, "bash: syntax error near unexpected token `&&'\n"],
    ['echo x |', 2, "bash: syntax error near unexpected token `newline'\n"],
    ['echo x >', 2, "bash: syntax error near unexpected token `newline'\n"],
    ['constructor', 127, 'bash: constructor: command not found\n'],
    [`echo ${'x'.repeat(70_000)}`, 2, 'bash: command line too long\n'],
  ])('%.20j with %i', async (text, status, err) => {
    expect(await run(text)).toMatchObject({ status, err });
  });

  it('never by an exception, whatever is typed', async () => {
    const fragments = [
      'echo',
      'cat',
      'ls',
      '-l',
      'sudo',
      '&&',
      '||',
      ';',
      '|',
      '>',
      '<',
      '2>&1',
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

it('ends a sleep that is interrupted, and what follows it', async () => {
  const interrupt = new AbortController();
  const written: string[] = [];
  const streams = { stdin: async () => '', out: (text: string) => void written.push(text), err: () => {} };
  const running = new GuestShell(guest).run('sleep 60; echo no', streams, interrupt.signal);
  interrupt.abort();
  expect(await running).toBe(130);
  expect(written).toEqual([]);
});
