import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { serveCommand } from '../src/cli/serve-command.ts';
import { simulatorCommand } from '../src/cli/simulator-command.ts';
import { checkConfig } from '../src/config/check.ts';
import { limitsSchema } from '../src/config/server-schema.ts';
import { readOverrides } from '../src/config/settings.ts';

const root = join(import.meta.dirname, '..', 'examples/deployment');
const read = (file: string): string => readFileSync(join(root, file), 'utf8');
const folder = mkdtempSync(join(tmpdir(), 'berth-deployment-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Read by drivers. */
const SECRETS = ['BERTH_SIMULATOR_TOKEN', 'BERTH_DRIVER_TOKEN'];
const drainS = limitsSchema.parse({}).drain_s;

/** Flags that `berth NAME` does not have, and variables that nothing reads. */
function unknownOf(args: readonly string[], environment: Readonly<Record<string, unknown>>): string[] {
  const [name, ...rest] = args;
  const command = name === 'serve' ? serveCommand({}) : name === 'simulator' ? simulatorCommand() : undefined;
  const flags = new Set(command?.options.map(({ long }) => long));
  const variables = Object.keys(environment).filter((variable) => !SECRETS.includes(variable));
  return [
    ...(command === undefined ? [`the command ${name}`] : []),
    ...rest.filter((arg) => arg.startsWith('--') && !flags.has(arg)),
    ...variables.filter((variable) => readOverrides({}, { [variable]: '1' }).length === 0),
  ];
}

describe('examples/deployment', () => {
  it('compose: the servers run with flags, variables and a configuration that there are', () => {
    const { services } = parse(read('compose/compose.yaml'));
    for (const { command, environment, stop_grace_period: grace } of [services.berth, services.simulator]) {
      expect(unknownOf(command, environment)).toEqual([]);
      if (grace !== undefined) expect(Number.parseInt(grace, 10)).toBeGreaterThan(drainS);
    }
    expect(services.berth.deploy.replicas).toBe(2);
    expect(services.berth.read_only).toBe(true);
    expect(checkConfig(join(root, 'compose/berth.yaml'))).toEqual([]);
  });

  it('systemd: the unit runs commands with flags that there are, and lets them drain', () => {
    const unit = read('systemd/berth.service');
    const [, command = ''] = /^ExecStart=\S+ \S+main\.js (.*)$/m.exec(unit) ?? [];
    expect(unknownOf(command.split(' '), {})).toEqual([]);
    expect(Number(/^TimeoutStopSec=(\d+)$/m.exec(unit)?.[1])).toBeGreaterThan(drainS);
  });

  it('kubernetes: the servers run with flags, variables and a configuration that there are', () => {
    const objects = parseAllDocuments(read('kubernetes/berth.yaml')).map((document) => document.toJS());
    const [config, { spec }] = ['ConfigMap', 'Deployment'].map((kind) =>
      objects.find((one) => one.kind === kind),
    );
    const [{ args, env, securityContext }] = spec.template.spec.containers;
    const variables = Object.fromEntries(env.map(({ name }: { name: string }) => [name, '']));
    expect(unknownOf(args, variables)).toEqual([]);
    expect(spec.template.spec.terminationGracePeriodSeconds).toBeGreaterThan(drainS);
    expect(securityContext.readOnlyRootFilesystem).toBe(true);
    const file = join(folder, 'berth.yaml');
    writeFileSync(file, config.data['berth.yaml']);
    expect(checkConfig(file)).toEqual([]);
  });
});
