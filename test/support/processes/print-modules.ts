import { registerHooks } from 'node:module';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';

// Loaded with `node --import`: at its end the process tells, as a line of JSON on standard error, which files of the
// repository it has loaded.
const root = fileURLToPath(new URL('../../../', import.meta.url));
const loaded = new Set<string>();
registerHooks({
  load: (url, context, nextLoad) => {
    if (url.startsWith('file:')) loaded.add(relative(root, fileURLToPath(url)));
    return nextLoad(url, context);
  },
});
process.on('exit', () => process.stderr.write(`${JSON.stringify([...loaded])}\n`));
