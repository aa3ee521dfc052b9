import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { Moment } from '../upgrade.suite.ts';

/** In the place of virsh. A server calls it with `-q -c URI SUBCOMMAND`. */
const VIRSH = `#!/bin/sh
PATH=\${PATH#*:}
moment=\${0%/*}/$4
if [ -e "$moment-after" ]; then
  virsh "$@"
elif [ ! -e "$moment-before" ]; then
  exec virsh "$@"
fi
: >"$moment-reached"
exec sleep 60
`;

/** Holds commands of the servers that are started with its `env`, those of before the shell of a host. */
export interface VirshGate extends Disposable {
  env: Record<string, string>;
  /** From now on no command of that name is answered. `reached` waits for the first. */
  hold(moment: Moment): { reached(): Promise<void> };
}

export function openVirshGate(): VirshGate {
  const folder = mkdtempSync(join(tmpdir(), 'berth-gate-'));
  writeFileSync(join(folder, 'virsh'), VIRSH, { mode: 0o755 });
  return {
    env: { PATH: `${folder}:${process.env['PATH']}` },
    hold({ when, command }) {
      writeFileSync(join(folder, `${command}-${when}`), '');
      const reached = join(folder, `${command}-reached`);
      return { reached: () => expect.poll(() => existsSync(reached), { interval: 50 }).toBe(true) };
    },
    [Symbol.dispose]: () => rmSync(folder, { recursive: true }),
  };
}
