import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Document, type RulesetDefinition, Spectral } from '@stoplight/spectral-core';
import parsers from '@stoplight/spectral-parsers';
import { oas } from '@stoplight/spectral-rulesets';

// `npm run lint:openapi`: Redocly and Spectral, each with its recommended rules, find nothing in the published OpenAPI
// documents. A warning counts as found.

const root = fileURLToPath(new URL('..', import.meta.url));
const files = [
  'openapi/orchestrator.v1.json',
  'openapi/operator.v1.json',
  'openapi/marketplace.json',
  'openapi/marketplace-operator.v1.json',
];

function lintWithRedocly(): boolean {
  const { status } = spawnSync('redocly', ['lint', ...files, '--extends', 'recommended-strict'], {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' },
  });
  return status === 0;
}

async function lintWithSpectral(file: string): Promise<boolean> {
  const spectral = new Spectral();
  // Its declared type lacks what every ruleset has.
  spectral.setRuleset({ extends: [oas as unknown as RulesetDefinition] });
  const found = await spectral.run(new Document(readFileSync(`${root}${file}`, 'utf8'), parsers.Json, file));
  for (const { code, path, message, range } of found)
    process.stderr.write(`${file}:${range.start.line + 1}: ${code}: ${message} (${path.join('.')})\n`);
  process.stdout.write(
    `${file}: Spectral finds ${found.length === 0 ? 'nothing' : `${found.length} problems`}\n`,
  );
  return found.length === 0;
}

const results = [lintWithRedocly()];
for (const file of files) results.push(await lintWithSpectral(file));
if (results.includes(false)) process.exitCode = 1;
