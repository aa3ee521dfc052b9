import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { Ajv } from 'ajv';
import { validate as validateDeployment } from 'kubernetes-models/_schemas/IoK8sApiAppsV1Deployment';
import { validate as validateConfigMap } from 'kubernetes-models/_schemas/IoK8sApiCoreV1ConfigMap';
import { validate as validateService } from 'kubernetes-models/_schemas/IoK8sApiCoreV1Service';
import { validate as validateBudget } from 'kubernetes-models/_schemas/IoK8sApiPolicyV1PodDisruptionBudget';
import { afterAll, describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { checkConfig } from '../../src/config/check.ts';
import { serverSchema } from '../../src/config/server-schema.ts';
import { readOverrides } from '../../src/config/settings.ts';
import { findMistake, loadBerth } from '../documents/command-line.ts';
import { root } from '../documents/pages.ts';

const examples = join(root, 'examples/deployment');
const read = (file: string): string => readFileSync(join(examples, file), 'utf8');
const folder = mkdtempSync(join(tmpdir(), 'berth-deployment-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Read by drivers, and named by `api_key_env`. */
const SECRETS = ['BERTH_SIMULATOR_TOKEN', 'BERTH_DRIVER_TOKEN', 'PROVIDER_A_KEY'];
const drainS = serverSchema(0).parse({}).drain_s;
const berth = await loadBerth();

/** Flags that `berth NAME` does not have, and variables that nothing reads. */
function unknownOf(args: readonly string[], environment: Readonly<Record<string, unknown>>): string[] {
  const prefix = args[0] === 'marketplace' ? 'BERTH_MARKETPLACE_' : 'BERTH_';
  const isRead = (variable: string): boolean =>
    SECRETS.includes(variable) || readOverrides({}, { [variable]: '1' }, prefix).length > 0;
  return [
    ...[findMistake(berth, ['berth', ...args], true) ?? []].flat(),
    ...Object.keys(environment).filter((variable) => !isRead(variable)),
  ];
}

const composeSchema = JSON.parse(readFileSync(join(root, 'fixtures/schemas/compose-spec.json'), 'utf8'));
// The schema names its dialect by an https address, which Ajv does not know; the formats are Docker's own.
const isCompose = new Ajv({
  strict: false,
  allErrors: true,
  validateSchema: false,
  validateFormats: false,
}).compile(composeSchema);

function composeFaults(file: unknown): string[] {
  isCompose(file);
  return (isCompose.errors ?? []).map(({ instancePath, message, params }) => {
    return `${instancePath} ${message} ${JSON.stringify(params)}`;
  });
}

const kinds: Record<string, ((value: unknown) => boolean) & { errors?: Fault[] | null }> = {
  'apps/v1 Deployment': validateDeployment,
  'v1 ConfigMap': validateConfigMap,
  'v1 Service': validateService,
  'policy/v1 PodDisruptionBudget': validateBudget,
};

interface Fault {
  instancePath: string;
  message?: string;
  keyword: string;
  params: object;
}

/**
 * What the API server would refuse in an object, or drop. The schemas of Kubernetes let unknown fields pass, so a field
 * counts as known if its validator reads it.
 */
function kubernetesFaults(object: { apiVersion: string; kind: string }): string[] {
  const kind = `${object.apiVersion} ${object.kind}`;
  const validate = kinds[kind];
  if (validate === undefined) return [`no schema for ${kind}`];
  const unread = new Set<string>();
  validate(recordUnread(object, '', unread));
  const faults = (validate.errors ?? []).map(({ instancePath, keyword, params }) => {
    return `${instancePath} ${keyword} ${JSON.stringify(params)}`;
  });
  return [...faults, ...[...unread].map((path) => `${path} unknown`)];
}

/** `value`, whose fields are in `unread` until something reads them. */
function recordUnread(value: unknown, path: string, unread: Set<string>): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const fields = new Map<PropertyKey, unknown>();
  for (const [key, field] of Object.entries(value)) {
    unread.add(`${path}/${key}`);
    fields.set(key, field);
  }
  return new Proxy(value, {
    get(target, key) {
      if (!fields.has(key)) return Reflect.get(target, key);
      const first = unread.delete(`${path}/${String(key)}`);
      if (first) fields.set(key, recordUnread(fields.get(key), `${path}/${String(key)}`, unread));
      return fields.get(key);
    },
  });
}

const kubernetesObjects = (text: string) => parseAllDocuments(text).map((document) => document.toJS());

describe('examples/deployment', () => {
  it.each([
    { file: 'compose/compose.yaml', config: 'compose/berth.yaml', server: 'berth' },
    {
      file: 'compose/marketplace/compose.yaml',
      config: 'compose/marketplace/marketplace.yaml',
      server: 'marketplace',
    },
  ])('$file: the servers run with flags, variables and a configuration that there are', (example) => {
    const compose = parse(read(example.file));
    expect(composeFaults(compose)).toEqual([]);
    const { [example.server]: server, simulator } = compose.services;
    for (const { command, environment, stop_grace_period: grace } of [server, simulator ?? server]) {
      expect(unknownOf(command, environment)).toEqual([]);
      if (grace !== undefined) expect(Number.parseInt(grace, 10)).toBeGreaterThan(drainS);
    }
    expect(server.deploy.replicas).toBe(2);
    expect(server.read_only).toBe(true);
    expect(server.ports, 'only the proxy is reached from outside').toBeUndefined();
    expect(server.volumes).toEqual([`./${basename(example.config)}:${server.command.at(-1)}:ro`]);
    expect(checkConfig(join(examples, example.config))).toEqual([]);
  });

  it('compose: the marketplace listens where the health check of the image and the proxy look for it', () => {
    expect(parse(read('compose/marketplace/marketplace.yaml')).server.port).toBe(8080);
    expect(read('compose/Caddyfile')).toContain('dynamic a {$BERTH_SERVICE:berth} 8080');
  });

  it.each(['berth.service', 'berth-marketplace.service'])(
    'systemd/%s runs commands with flags that there are, and lets them drain',
    (file) => {
      const unit = read(`systemd/${file}`);
      const [, command = ''] = /^ExecStart=\S+ \S+main\.js (.*)$/m.exec(unit) ?? [];
      expect(unknownOf(command.split(' '), {})).toEqual([]);
      expect(Number(/^TimeoutStopSec=(\d+)$/m.exec(unit)?.[1])).toBeGreaterThan(drainS);
    },
  );

  it.each(['berth.yaml', 'marketplace.yaml'])(
    'kubernetes/%s: the servers run with flags, variables and a configuration that there are',
    (name) => {
      const objects = kubernetesObjects(read(`kubernetes/${name}`));
      expect(objects.map(kubernetesFaults)).toEqual(objects.map(() => []));
      const [config, { spec }, service] = ['ConfigMap', 'Deployment', 'Service'].map((kind) =>
        objects.find((one) => one.kind === kind),
      );
      expect(spec.strategy, 'a new version may change the tables').toEqual({ type: 'Recreate' });
      const [{ args, env, securityContext }] = spec.template.spec.containers;
      const variables = Object.fromEntries(env.map((one: { name: string }) => [one.name, '']));
      expect(unknownOf(args, variables)).toEqual([]);
      expect(spec.template.spec.terminationGracePeriodSeconds).toBeGreaterThan(drainS);
      expect(securityContext.readOnlyRootFilesystem).toBe(true);
      expect(service.spec.ports, 'not the admin listener').toEqual([
        { name: 'http', port: 80, targetPort: 'http' },
      ]);
      const file = join(folder, name);
      writeFileSync(file, config.data[basename(args.at(-1))]);
      expect(checkConfig(file)).toEqual([]);
    },
  );

  it('finds flags and variables that there are not', () => {
    expect(unknownOf(['serve', '--prot', '1'], { BERTH_PROT: '1' })).toEqual([
      'berth serve knows no --prot',
      'BERTH_PROT',
    ]);
  });

  it.each([
    ['\n    restart: unless-stopped', '\n    restrat: unless-stopped', /additional properties.*restrat/],
    ['replicas: 2', 'replicas: [2]', /\/services\/berth\/deploy\/replicas must be/],
  ])('finds %s as %s in a compose file', (from, to, fault) => {
    expect(composeFaults(parse(replaced(read('compose/compose.yaml'), from, to))).join('\n')).toMatch(fault);
  });

  it.each([
    ['readinessProbe:', 'readynessProbe:', /\/containers\/0\/readynessProbe unknown/],
    ['containerPort: 8080', 'containerPort: http', /containerPort type/],
    ['kind: Deployment', 'kind: Deploiment', /no schema for apps\/v1 Deploiment/],
  ])('finds %s as %s in a manifest', (from, to, fault) => {
    const objects = kubernetesObjects(replaced(read('kubernetes/berth.yaml'), from, to));
    expect(objects.flatMap(kubernetesFaults).join('\n')).toMatch(fault);
  });
});

function replaced(text: string, from: string, to: string): string {
  expect(text).toContain(from);
  return text.replace(from, to);
}
