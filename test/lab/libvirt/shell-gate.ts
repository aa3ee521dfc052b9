import { execFileSync } from 'node:child_process';
import {
  closeSync,
  constants,
  existsSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import type { HeldCommand } from '../interruptions.ts';

/**
 * The shell of a server: each of its commands that changes something goes through one. It asks before, and before it gives
 * the status back, and the command is as real as without it.
 */
const SHELL = `#!/bin/sh
PATH=\${PATH#*:}
[ "$1$3" = -cberth ] || [ "$1$3" = -sfenced ] || exec /bin/sh "$@"
gate=\${0%/*} me=\${0%/*}/$$
mkfifo "$me"
printf '%s\\0' "$PPID" "$@" >"$me.argv"
exec 8<>"$me"
echo "$$" >"$gate/asked"
read -r verdict <&8
[ "$verdict" = run ] || exit 1
/bin/sh "$@" 8<&-
status=$?
echo "$$ $status" >"$gate/asked"
read -r verdict <&8
exit "$status"
`;

/** Holds each changing command of the servers that are started with its `env`. */
export interface ShellGate extends Disposable {
  env: Record<string, string>;
  /** Called for each command. */
  handle: (command: HeldCommand) => void;
}

export function openShellGate(): ShellGate {
  const folder = mkdtempSync(join(tmpdir(), 'berth-gate-'));
  writeFileSync(join(folder, 'sh'), SHELL, { mode: 0o755 });
  const asked = join(folder, 'asked');
  execFileSync('mkfifo', [asked]);
  // With both ends open it never ends.
  const fd = openSync(asked, constants.O_RDWR | constants.O_NONBLOCK);
  const socket = new Socket({ fd, readable: true, writable: false });
  const ended = new Map<string, (isDone: boolean) => void>();
  const answers: number[] = [];
  const gate: ShellGate = {
    env: { PATH: `${folder}:${process.env['PATH']}` },
    handle: () => undefined,
    [Symbol.dispose]() {
      socket.destroy();
      for (const answer of answers) closeSync(answer);
      rmSync(folder, { recursive: true });
    },
  };
  createInterface({ input: socket }).on('line', (line) => {
    const [shell = '', status] = line.split(' ');
    if (status !== undefined) return ended.get(shell)?.(status === '0');
    const answer = openSync(join(folder, shell), constants.O_RDWR | constants.O_NONBLOCK);
    answers.push(answer);
    const [parent, ...argv] = readFileSync(join(folder, `${shell}.argv`), 'utf8').split('\0');
    gate.handle({
      pid: Number(parent),
      name: describe(argv),
      claim: claimOf(argv),
      carryOut: async () => {
        let isDone: boolean | undefined;
        ended.set(shell, (status) => {
          isDone = status;
        });
        writeSync(answer, 'run\n');
        // Its server may have ended it.
        while (isDone === undefined && existsSync(`/proc/${shell}`)) await sleep(20);
        return isDone ?? false;
      },
      release: () => void writeSync(answer, 'end\n'),
    });
  });
  return gate;
}

/** What a command changes, and by which claim. Undefined: it is of a read, which has none. @throws {Error} if it is neither */
function claimOf([, , , , , resource = '', fence = '']: readonly string[]): HeldCommand['claim'] {
  if (resource === '' && fence === '') return undefined;
  if (!/\.(machine|volume)$/.test(resource) || !(Number(fence) > 0))
    throw new Error(`a command has the claim ${fence} of ${resource}`);
  return { resource, fence: Number(fence) };
}

/** The subcommand of virsh, and of its arguments what tells it from others: options, kinds of files, words of the mark. */
function describe([, , , , , , , , , program = '', ...args]: readonly string[]): string {
  const words = args.flatMap((word) => {
    if (word.startsWith('<'))
      return [...word.matchAll(/<claim[^>]* state=['"](\w+)|<memo>(\w+)/g)].map(
        ([, state, memo]) => state ?? memo ?? '',
      );
    const file = /^(?:\/.*\/)?berth-\w+-[0-9a-f]{32}(?:-g\d+)?(\.[\w.]+)$/.exec(word)?.[1];
    if (word.includes(';')) return word.split(/[ ;]/, 1);
    return file ?? (/^(--\w[\w-]+|[a-z-]+)$/.test(word) ? word : []);
  });
  return words.length === 0 ? program : words.join(' ');
}
