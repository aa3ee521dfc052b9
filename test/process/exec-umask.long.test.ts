import { readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { runBerth, startServing, temporaryFolder } from '../support/processes/process.ts';

/** Writes a file, as it would for its guests, and then answers `info` and nothing else. */
const DRIVER = `#!/bin/sh
umask > made
read -r line
echo '{"id":"1","result":{"protocol":1,"name":"sh","capabilities":{"create_visible_within_ms":0}}}'
while read -r line; do :; done
`;

const modeOf = (file: string): number => statSync(file).mode & 0o777;

it.each([
  ['0022', 0o644],
  ['0027', 0o640],
])(
  'a driver has the umask %s that Berth was started with, and Berth’s own files are its own',
  async (umask, mode) => {
    using folder = temporaryFolder();
    const at = (name: string): string => join(folder.path, name);
    writeFileSync(at('driver'), DRIVER, { mode: 0o755 });
    writeFileSync(at('berth.yaml'), `platform: { driver: exec, command: ['${at('driver')}'] }\n`);
    const through = ['sh', '-c', `umask ${umask}; exec "$@"`, 'sh'];
    const options = { cwd: folder.path, through };
    {
      await using _ = await startServing(
        ['--config', at('berth.yaml'), '--database', 'sqlite:berth.db'],
        options,
      );
      expect(modeOf(at('made'))).toBe(mode);
      const own = readdirSync(folder.path).filter((name) => name.startsWith('berth.db'));
      expect(own.map((name) => [name, modeOf(at(name))])).toEqual(own.map((name) => [name, 0o600]));
      expect(own).toContain('berth.db');
    }
    rmSync(at('made'));
    await runBerth(['driver', 'test', '--only', 'manifest', '--timeout-s', '1', at('driver')], options);
    expect(modeOf(at('made'))).toBe(mode);
  },
);
