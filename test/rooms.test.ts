import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { importsOf } from './support/imports.ts';

/** The rooms of each part, from the lowest up: a file imports from its own room and from those before it. */
const parts: Readonly<Record<string, readonly string[]>> = {
  'src/orchestrator': [
    'model',
    'cloud-init',
    'catalog',
    'alarms',
    'accounts',
    'capacity',
    'volumes',
    'instances',
    'changes',
    'platform',
    'steps',
    'reconciliation',
    'queue',
    'operate',
    'console',
    'http',
  ],
  'src/marketplace': [
    'contract',
    'model',
    'providers',
    'deps.ts',
    'discounts',
    'mail',
    'ledger',
    'teams',
    'ssh-keys',
    'offers',
    'volumes',
    'deployments',
    'sync',
    'operate',
    'console',
    'http',
  ],
  'src/http': ['wire', 'api'],
  'src/operator-kit': [
    'model.ts',
    'audit.ts',
    'operation.ts',
    'refused-sign-ins.ts',
    'keys.ts',
    'views',
    'http',
    'console',
  ],
  'src/platform-model': [
    'records.ts',
    'rules.ts',
    'steps.ts',
    'machine-index.ts',
    'machines.ts',
    'hosts.ts',
    'volumes.ts',
    'platform.ts',
    'call-faults.ts',
    'events.ts',
  ],
  'src/sandbox': [
    'duration.ts',
    'phases.ts',
    'options.ts',
    'settings.ts',
    'clock.ts',
    'machines.ts',
    'ownership.ts',
    'operations.ts',
    'provider.ts',
    'faults',
    'transitions',
    'operate',
    'journal',
    'verdict',
    'record',
    'state',
    'control',
    'sandbox.ts',
    'router.ts',
  ],
  'src/compose': ['stores', 'server', 'drivers', 'orchestrator', 'doctor', 'marketplace', 'serve', 'sandbox'],
  conformance: [
    'text',
    'contract',
    'transcript',
    'http',
    'ssh',
    'waiting',
    'resources',
    'scenarios',
    'evidence',
    'checks',
    'verdict',
    'plan',
    'doctor',
    'run',
    'report',
    'certificate',
    'log',
    'monitor',
    'mutants',
    'cli',
    'cli.ts',
    'index.ts',
  ],
  simulation: [
    'kernel',
    'runner',
    'orchestrator',
    'engine',
    'marketplace',
    'export',
    'simulations.ts',
    'mutants',
    'cli.ts',
  ],
  'simulation/orchestrator': [
    'accounts.ts',
    'catalog.ts',
    'platform',
    'replicas',
    'scenario.ts',
    'workload',
    'invariants',
    'operator-cordons.ts',
    'server-faults.ts',
    'base-world.ts',
    'world.ts',
    'fault-injection.ts',
    'host-faults.ts',
    'operator.ts',
    'quiesce.ts',
    'check-sound-platform.ts',
    'run.ts',
  ],
  'simulation/engine': [
    'engine.ts',
    'catalog.ts',
    'commands.ts',
    'scenario.ts',
    'observed-driver.ts',
    'ssh.ts',
    'people.ts',
    'guest.ts',
    'libvirt',
    'incus',
    'exec',
    'openstack',
    'invariants',
    'writers.ts',
    'backups.ts',
    'rollouts.ts',
    'world.ts',
    'quiesce.ts',
    'run.ts',
  ],
  'simulation/marketplace': [
    'accounts.ts',
    'providers',
    'replicas',
    'scenario.ts',
    'operator.ts',
    'workload',
    'invariants',
    'world.ts',
    'fault-injection.ts',
    'quiesce.ts',
    'run.ts',
  ],
};

type Files = ReadonlyMap<string, string>;

const isForTests = (path: string): boolean => /\.(test|suite|fixture)\.ts$/.test(path);

function readSources(...folders: string[]): Files {
  const root = join(import.meta.dirname, '..');
  const paths = globSync(
    folders.map((folder) => `${folder}/**/*.ts`),
    { cwd: root },
  ).filter((path) => !isForTests(path));
  return new Map(paths.map((path) => [path, readFileSync(join(root, path), 'utf8')]));
}

/** Each import that goes from a room to a later one, or that comes from a room which the list does not have. */
function upwards(part: string, rooms: readonly string[], files: Files): string[] {
  const roomOf = (path: string): number =>
    path.startsWith(`${part}/`) ? rooms.indexOf(path.slice(part.length + 1).split('/')[0] ?? '') : -1;
  const own = [...files].filter(([path]) => path.startsWith(`${part}/`));
  if (own.length === 0) throw new Error(`there are no files in ${part}`);
  return own.flatMap(([path, text]) => {
    if (roomOf(path) < 0) return [`${path} is in no room of the list`];
    return importsOf(path, text)
      .files.filter((target) => roomOf(target) > roomOf(path))
      .map((target) => `${path} → ${target}`);
  });
}

/** Files that import each other, directly or through others: each circle once, from its first file. */
function circles(files: Files): string[][] {
  const imports = new Map([...files].map(([path, text]) => [path, importsOf(path, text).files]));
  const done = new Set<string>();
  const found: string[][] = [];
  const visit = (path: string, trail: string[]): void => {
    const begun = trail.indexOf(path);
    if (begun >= 0) return void found.push(trail.slice(begun));
    if (done.has(path)) return;
    for (const target of imports.get(path) ?? []) if (imports.has(target)) visit(target, [...trail, path]);
    done.add(path);
  };
  for (const path of imports.keys()) visit(path, []);
  return found;
}

describe.each(Object.entries(parts))('%s', (part, rooms) => {
  it('has no import from a room to a later one', () => {
    expect(upwards(part, rooms, readSources(part))).toEqual([]);
  });

  it('has each room of the list', () => {
    const paths = [...readSources(part).keys()];
    const isThere = (room: string): boolean =>
      paths.some((path) => path === `${part}/${room}` || path.startsWith(`${part}/${room}/`));
    expect(rooms.filter((room) => !isThere(room))).toEqual([]);
  });
});

it('no file imports itself through others', () => {
  const sources = readSources('src', 'conformance', 'simulation');
  expect(circles(sources)).toEqual([]);
});

describe('a planted violation is caught', () => {
  it.each([
    ['src/orchestrator', 'src/orchestrator/model/a.ts', "import { x } from '../instances/create.ts';"],
    ['src/orchestrator', 'src/orchestrator/volumes/a.ts', "import type { X } from '../steps/settle.ts';"],
    ['src/orchestrator', 'src/orchestrator/reconciler/a.ts', 'export const x = 1;'],
    ['src/marketplace', 'src/marketplace/volumes/a.ts', "import { x } from '../deployments/create.ts';"],
    ['src/marketplace', 'src/marketplace/ledger/a.ts', "export { x } from '../volumes/create.ts';"],
    ['src/marketplace', 'src/marketplace/providers/a.ts', "import type { Deps } from '../deps.ts';"],
    ['src/compose', 'src/compose/doctor/a.ts', "import { x } from '../serve/serve.ts';"],
    ['src/http', 'src/http/wire/a.ts', "import { x } from '../api/errors.ts';"],
    ['src/platform-model', 'src/platform-model/machines.ts', "import type { Volumes } from './volumes.ts';"],
    ['simulation', 'simulation/kernel/a.ts', "import { x } from '../runner/run-world.ts';"],
    ['simulation', 'simulation/orchestrator/a.ts', "import { x } from '../marketplace/world.ts';"],
    [
      'simulation/orchestrator',
      'simulation/orchestrator/invariants/a.ts',
      "import type { World } from '../world.ts';",
    ],
  ])('in %s: %s with %s', (part, path, text) => {
    expect(upwards(part, parts[part] ?? [], new Map([[path, text]]))).toHaveLength(1);
  });

  it('a circle of two files, and one of three', () => {
    const files = new Map([
      ['a.ts', "import './b.ts';"],
      ['b.ts', "import type { X } from './a.ts'; import './c.ts';"],
      ['c.ts', "import './d.ts';"],
      ['d.ts', "import './b.ts';"],
    ]);
    expect(circles(files)).toEqual([
      ['a.ts', 'b.ts'],
      ['b.ts', 'c.ts', 'd.ts'],
    ]);
  });

  it('and nothing is said of a part without files', () => {
    expect(() => upwards('src/http', ['wire'], new Map())).toThrow('no files');
  });
});
