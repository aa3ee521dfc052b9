#!/usr/bin/env bash
# Uses the package as a program that depends on it: imports its libraries by their names, runs them, and checks the types.
# usage: run.sh FOLDER    where the package is installed, with nothing beside it
set -euo pipefail
folder=$1
root=$PWD
bin=$PWD/node_modules/.bin
types=$PWD/node_modules/@types
cd "$folder"

cat >consumer.ts <<'END_OF_FILE'
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Configuration, createClient, ProviderError, systemClock } from 'berth/client';
import { loadRequirements, type RunOptions, run, suiteVersion } from 'berth/conformance';
import { createSandbox } from 'berth/sandbox';
import metadata from 'berth/package.json' with { type: 'json' };

const server = createServer((_request, response) => {
  response.statusCode = 503;
  response.setHeader('Content-Type', 'application/json');
  response.end(JSON.stringify({ error: { code: 'unavailable', message: 'later' } }));
}).listen(0, '127.0.0.1');
await new Promise((resolve) => server.once('listening', resolve));
const client = createClient({
  baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
  credential: { apiKey: 'key' },
  allowPrivate: true,
  timeoutMs: 5_000,
  clock: systemClock,
});
try {
  const offers: Configuration[] = await client.listAvailability();
  throw new Error(`there are no offers, and these came: ${offers.map(({ id }) => id)}`);
} catch (error) {
  if (!(error instanceof ProviderError) || error.problem !== 'failed' || error.status !== 503) throw error;
} finally {
  await client.close();
  server.close();
}
{
  await using sandbox = await createSandbox({ providers: ['a'], marketplace: true });
  const { baseUrl, apiKey } = sandbox.provider('a');
  const { status } = await sandbox.fetch(`${baseUrl}/availability`, {
    headers: { Authorization: `Bearer ${apiKey}` },
  });
  if (status !== 200) throw new Error(`the sandbox answers ${status}`);
}
const start: (options: RunOptions, ...more: never[]) => unknown = run;
if (typeof start !== 'function' || suiteVersion !== metadata.version || loadRequirements().rows.length === 0)
  throw new Error('berth/conformance is not whole');
process.stdout.write(`berth/client, berth/sandbox and berth/conformance ${suiteVersion}: imported and used\n`);
END_OF_FILE

cat >tsconfig.json <<END_OF_FILE
{
  "compilerOptions": {
    "module": "nodenext", "target": "es2024", "lib": ["es2024", "esnext.disposable"], "strict": true, "noEmit": true,
    "exactOptionalPropertyTypes": true, "typeRoots": ["$types"], "types": ["node"]
  },
  "files": ["consumer.ts"]
}
END_OF_FILE

printf '{ "type": "module" }\n' | "$bin/node" -e '
  const given = JSON.parse(fs.readFileSync(0, "utf8"));
  const own = JSON.parse(fs.readFileSync("package.json", "utf8"));
  fs.writeFileSync("package.json", JSON.stringify({ ...own, ...given }, null, 2));'
"$bin/node" consumer.ts

# The fixture is for the user's own vitest.
ln -s "$bin/../vitest" node_modules/vitest
cat >sandbox.test.ts <<'END_OF_FILE'
import { sandboxTest } from 'berth/sandbox/vitest';
import { expect } from 'vitest';

const test = sandboxTest({ providers: ['b'] });

test('a client sees what is for sale', async ({ sandbox }) => {
  const at = sandbox.defaultAccount.providers['provider-b'];
  const headers = { authorization: `Bearer ${at?.apiKey}` };
  expect((await sandbox.fetch(`${at?.baseUrl}/availability`, { headers })).status).toBe(200);
});
END_OF_FILE
cp "$root"/examples/sandbox/vitest/*.ts .
"$bin/vitest" run
sed 's/consumer.ts/sandbox.test.ts", "client.test.ts/; s/"noEmit"/"skipLibCheck": true, "allowImportingTsExtensions": true, "noEmit"/' tsconfig.json >tsconfig.vitest.json
"$bin/tsc" -p tsconfig.vitest.json
"$bin/tsc" -p tsconfig.json
