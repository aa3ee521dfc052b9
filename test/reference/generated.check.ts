import { join } from 'node:path';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { toJson } from '../../conformance/report/model.ts';
import { greenReport, sampleReport } from '../../conformance/report/sample.fixture.ts';
import { protocolJsonSchema } from '../../src/drivers/exec/protocol/json-schema.ts';
import { letters, readProvider } from '../../src/marketplace/volumes/seven-providers.fixture.ts';
import { scenarioSchema } from '../../src/sandbox/state/scenario-format.ts';
import { root } from '../documents/pages.ts';
import { cliPage } from './cli-page.ts';
import { configSchemas } from './config-schemas.ts';
import { configurationPage, profilesPage } from './configuration-page.ts';
import { driversPage } from './drivers-page.ts';
import { errorsPage } from './errors-page.ts';
import { metricsPage } from './metrics-page.ts';
import { providersPage } from './providers-page.ts';
import { readPublished } from './published.ts';
import { sandboxFaultsPage } from './sandbox-faults-page.ts';

const inJson = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;
const { documents, metrics } = await readPublished();

/** Every file that is written from the code. */
const generated: Readonly<Record<string, () => string | Promise<string>>> = {
  'docs/cli.md': cliPage,
  'docs/configuration.md': configurationPage,
  'docs/drivers.md': driversPage,
  'docs/errors.md': errorsPage,
  'docs/metrics.md': () => metricsPage(metrics),
  'docs/profiles.md': profilesPage,
  'docs/providers.md': () => providersPage(letters.map((letter) => readProvider(letter).profile)),
  'docs/sandbox-faults.md': sandboxFaultsPage,
  'openapi/orchestrator.v1.json': () => inJson(documents['orchestrator.v1']),
  'openapi/operator.v1.json [operator-openapi]': () => inJson(documents['operator.v1']),
  'openapi/marketplace.json [marketplace-openapi]': () => inJson(documents.marketplace),
  'openapi/marketplace-operator.v1.json': () => inJson(documents['marketplace-operator.v1']),
  'openapi/sandbox-control.v1.json': () => inJson(documents['sandbox-control.v1']),
  'openapi/scenario.schema.json': () =>
    inJson({ title: 'Berth: a scenario of the sandbox', ...z.toJSONSchema(scenarioSchema, { io: 'input' }) }),
  'openapi/driver-protocol.json [driver-protocol]': () => inJson(protocolJsonSchema()),
  ...Object.fromEntries(
    configSchemas().map(({ name, schema }) => [`openapi/${name}.schema.json`, () => inJson(schema)]),
  ),
  'conformance/report/examples/conformant.json': () => toJson(greenReport),
  'conformance/report/examples/non-conformant.json': () => toJson(sampleReport),
};

it.each(Object.entries(generated))('`npm run generate` changes nothing of %s', async (name, write) => {
  const [file = ''] = name.split(' ');
  await expect(await write()).toMatchFileSnapshot(join(root, file));
});
