import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import Ajv2020 from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { createSandbox } from '../../compose/sandbox/sandbox.ts';
import { scenarioSchema } from './scenario-format.ts';

const folder = join(import.meta.dirname, '../../../fixtures/scenarios');
const schema = JSON.parse(readFileSync(join(folder, '../../openapi/scenario.schema.json'), 'utf8'));
const validate = addFormats.default(new Ajv2020.default({ strict: false })).compile(schema);

/** The result of each scenario: the statuses that the default account reads, oldest first, and more. */
const outcomes: Record<string, { statuses: string[]; volumes?: string[] }> = {
  'one-running': { statuses: ['ONLINE'] },
  starting: { statuses: ['PROVISIONING', 'PROVISIONING', 'PROVISIONING'] },
  stopped: { statuses: ['STOPPED'] },
  fleet: { statuses: Array(30).fill('ONLINE') },
  'sold-out': { statuses: [] },
  'last-unit': { statuses: [] },
  'volume-attached': { statuses: ['ONLINE', 'ONLINE'], volumes: ['available'] },
  'volume-left-behind': { statuses: [], volumes: ['available'] },
  destroying: { statuses: ['DESTROYING'] },
  'month-old': { statuses: ['ONLINE'] },
  'many-providers': { statuses: ['ONLINE'] },
  'marketplace-running': { statuses: [] },
  'flaky-provider': { statuses: ['ONLINE'] },
};

describe('fixtures/scenarios', () => {
  it.each(globSync('*.yaml', { cwd: folder }).sort())('%s can be played [sandbox-scenario]', async (file) => {
    const text = readFileSync(join(folder, file), 'utf8');
    validate(parse(text));
    expect(validate.errors).toBeNull();
    const { name, sandbox: { clock: _clock, ...options } = {} } = scenarioSchema.parse(parse(text));
    expect(`${name}.yaml`).toBe(file);
    await using sandbox = await createSandbox(JSON.parse(JSON.stringify(options)));
    await sandbox.control.play(parse(text));
    const [provider] = sandbox.providers.values();
    const reply = await sandbox.provider(provider?.name ?? '').app.fetch(
      new Request('http://sandbox.test/v1/instances', {
        headers: { Authorization: `Bearer ${provider?.apiKey}` },
      }),
    );
    const { instances } = (await reply.json()) as { instances: { status: string }[] };
    const volumes = provider?.platform.volumes.all() ?? [];
    expect({
      statuses: instances.map(({ status }) => status),
      ...(volumes.length > 0 && { volumes: volumes.map(({ state }) => state) }),
    }).toEqual(outcomes[name]);
    expect(await sandbox.control.journal.entries({ account: 'default' })).toEqual([]);
  });

  it('a scenario of the marketplace is billed', async () => {
    await using sandbox = await createSandbox({ marketplace: true });
    const made = await sandbox.control.play(
      parse(readFileSync(join(folder, 'marketplace-running.yaml'), 'utf8')),
    );
    const { marketplace } = sandbox.defaultAccount;
    const reply = await sandbox.fetch(`/api/deployments/${made['web']?.id}`, {
      headers: { Authorization: `Bearer ${marketplace?.apiKey}` },
    });
    const { status, totalCost, hourlyRate } = (await reply.json()) as {
      status: string;
      totalCost: number;
      hourlyRate: number;
    };
    expect(status).toBe('running');
    expect(totalCost).toBeGreaterThan(47.9 * hourlyRate);
    expect(totalCost).toBeLessThan(48.1 * hourlyRate);
  });
});

it('reports the step that failed, and the errors in a scenario', async () => {
  await using sandbox = await createSandbox();
  const play = (text: string) => sandbox.control.play(parse(text));
  await expect(play('name: x\nsteps: [{ do: stop, instance: nobody }]')).rejects.toThrow(
    'steps[0] (stop): no earlier step made nobody',
  );
  await expect(
    play('name: x\nsteps: [{ do: create_instance, as: one, configuration_id: none }]'),
  ).rejects.toThrow('steps[0] (create_instance): provider-a sells no none');
  await expect(play('steps: []')).rejects.toThrow('name is required: a string');
});
