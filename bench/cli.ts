import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

/** `npm run bench -- NAME [FLAGS]` runs bench/NAME.ts; without a name, the polled read. */
const [name = '', ...flags] = process.argv.slice(2);
const isNamed = name !== '' && !name.startsWith('-');
const file = join(import.meta.dirname, `${isNamed ? name : 'polled-read'}.ts`);
const { status } = spawnSync(process.execPath, [file, ...(isNamed ? flags : process.argv.slice(2))], {
  stdio: 'inherit',
});
process.exitCode = status ?? 1;
