import { describe, expect, it } from 'vitest';
import { isForTests, Source, sourcesIn } from './source-tree.ts';

/** Patterns of paths; the names of rooms end in `/`. */
const PORTS = 'src/ports/';
/** Without what both products show of operators' keys and audit log, which is made with the HTTP kit. */
const OPERATORS = 'src/operator-kit/(?!http/|console/)';
/** What an adapter is written against: the records and ports of the orchestrator, and nothing that decides. */
const MODEL = 'src/((ports|keys|work|contract|orchestrator/model)/|operator-kit/(alarms/)?model.ts)';
const CATALOG = 'src/orchestrator/catalog/catalog.ts';
/** Everything but the command line, which nothing imports but `berth.ts` and `main.ts`. */
const COMPOSITION = 'src/(?!cli/|(berth|main).ts)';
const SUPPORT = 'test/support/(time|rows|doubles)/';

/**
 * What a room may import besides itself, and from which packages (left out: from any). The first row that fits a path
 * counts; what its brackets match is a room of its own.
 */
const directions: readonly (readonly [room: string, mayImport: string, packages?: string])[] = [
  // What it takes from Node must be taken once, before a test can replace it.
  ['src/ports/timers.ts', '', 'node:'],
  [PORTS, 'src/ports/timers.ts', ''],
  ['src/keys/', PORTS, 'node:'],
  ['src/(http|work|runtime)/', PORTS],
  ['src/contract/', '', 'zod node:'],
  ['src/operator-kit/(http|console)/', `src/(ports|keys|http|contract)/|${OPERATORS}`],
  ['src/operator-kit/', 'src/(ports|keys|contract)/', 'zod node:'],
  ['src/orchestrator/(http|console)/', 'src/(ports|keys|work|contract|orchestrator|http|operator-kit)/'],
  ['src/orchestrator/', `src/(ports|keys|work|contract)/|${OPERATORS}`],
  [
    'src/platform-model/',
    `src/((ports|contract)/|work/due-queue.ts|orchestrator/model/(platform-driver|inventory).ts)`,
    '',
  ],
  ['src/drivers/kit/', `${MODEL}|${CATALOG}|src/platform-model/`],
  ['src/drivers/registry.ts', 'src/drivers/(kit/|[^/]+/driver.ts)'],
  [
    'src/drivers/([^/]+)/',
    `${MODEL}|${CATALOG}|src/((orchestrator/cloud-init|drivers/kit|platform-model)/|client/transport.ts)`,
  ],
  ['src/store/', `${MODEL}|src/marketplace/model/`],
  ['src/ssh/', 'src/(ports|contract)/'],
  [
    'src/config/',
    'src/((ports|contract|orchestrator/catalog)/|drivers/(registry|kit/driver-definition).ts|' +
      'operator-kit/alarms/model.ts|(orchestrator|marketplace)/model/alarm.ts|' +
      'marketplace/(model/options|providers/profile).ts|client/base-url.ts|work/lease-time.ts)',
  ],
  ['src/client/index.ts', 'src/((ports|contract|client)/|runtime/system.ts)'],
  ['src/client/', 'src/(ports|contract)/'],
  ['src/marketplace/(http|console)/', 'src/(ports|keys|work|contract|client|marketplace|http|operator-kit)/'],
  ['src/marketplace/', `src/(ports|keys|work|contract|client)/|${OPERATORS}`],
  ['src/compose/', COMPOSITION],
  // Commands run use cases, here or through a server, and print what these return. What a server is made of is for
  // compose to know.
  [
    'src/cli/',
    `src/((ports|compose|config|contract|runtime)/|(orchestrator|marketplace)/(?!http/)|client/)|${OPERATORS}`,
    'commander yaml zod node:',
  ],
  // Its control client has the calls of both operator APIs.
  [
    'src/sandbox/',
    `${MODEL}|${CATALOG}|${OPERATORS}|src/(http|platform-model|client|marketplace/(contract|providers))/|` +
      'src/(orchestrator|marketplace)/operate/(operations|commands).ts|src/orchestrator/http/errors.ts|' +
      'src/config/package-root.ts',
  ],
  ['src/berth.ts', 'src/(cli|compose|config|runtime)/|conformance/cli.ts'],
  ['src/main.ts', 'src/(berth.ts|(cli|runtime)/)'],
  ['conformance/', ''],
  // The build of the image has nothing else.
  ['build/', '(src|conformance)/'],
  // What tests share knows rooms, not what is composed of them.
  [SUPPORT, `src/(?!(cli|compose|config)/|(berth|main|index).ts)|${SUPPORT}`],
];

/** The rooms of a part from the lowest up: a file imports only from its own room and from those before it. */
const levels: Readonly<Record<string, string>> = {
  'src/http/': 'wire api',
  'src/orchestrator/':
    'model cloud-init catalog alarms accounts capacity volumes instances platform steps reconciliation queue operate console http',
  'src/marketplace/':
    'contract model providers deps.ts discounts mail ledger teams ssh-keys offers volumes deployments sync operate console http',
  'src/compose/': 'stores server drivers orchestrator doctor marketplace serve sandbox',
  'conformance/':
    'text contract transcript http ssh waiting resources scenarios evidence checks verdict doctor run report certificate monitor mutants cli cli.ts index.ts',
  'simulation/': 'kernel runner orchestrator engine marketplace simulations.ts mutants cli.ts main.ts',
};

/** Folders some of whose rooms import each other. None may be added. */
const TANGLED = ['conformance/scenarios', 'src/drivers/libvirt'];

/** No pattern fits nothing. */
const beginning = (pattern: string): RegExp => new RegExp(pattern === '' ? '(?!)' : `^(?:${pattern})`);
const table = directions.map(([room, mayImport, packages]) => ({
  room: beginning(room),
  mayImport: beginning(mayImport),
  packages: packages?.split(' ').filter(Boolean),
}));
const rowOf = (path: string) => table.find(({ room }) => room.test(path));
const roomOf = (path: string): string | undefined => rowOf(path)?.room.exec(path)?.[0];
const isSupport = (path: string): boolean => beginning(SUPPORT).test(path);

/** The imports of a file that the table of directions does not allow. */
function misdirected({ path, imports: { files, packages } }: Source): string[] {
  const row = rowOf(path);
  if (row === undefined) return [`${path} is in no room of the table`];
  const isAllowed = (target: string): boolean =>
    isForTests(target)
      ? isSupport(path) && isSupport(target)
      : roomOf(target) === roomOf(path) || row.mayImport.test(target);
  return [
    ...files.filter((target) => !isAllowed(target)),
    ...packages.filter((name) => row.packages?.includes(name) === false),
  ].map((target) => `${path} → ${target}`);
}

/** The imports of a file from a room above its own. */
function upwards({ path, imports: { files } }: Source): string[] {
  return Object.entries(levels).flatMap(([part, rooms]) => {
    const levelOf = (file: string): number =>
      file.startsWith(part) ? rooms.split(' ').indexOf(file.slice(part.length).split('/')[0] ?? '') : -1;
    if (!path.startsWith(part)) return [];
    if (levelOf(path) < 0) return [`${path} is in no room of ${part}`];
    return files
      .filter((target) => levelOf(target) > levelOf(path))
      .map((target) => `${path} → ${target}, which is above it`);
  });
}

type Graph = Map<string, Set<string>>;

/** What imports itself through others: each circle once, from where it was entered. */
function circlesIn(graph: Graph): string[][] {
  const done = new Set<string>();
  const found: string[][] = [];
  const visit = (node: string, trail: string[]): void => {
    const begun = trail.indexOf(node);
    if (begun >= 0) return void found.push(trail.slice(begun));
    if (done.has(node)) return;
    for (const target of graph.get(node) ?? []) visit(target, [...trail, node]);
    done.add(node);
  };
  for (const node of graph.keys()) visit(node, []);
  return found;
}

/** Which files import which, and for each folder, which of the files and folders in it do. */
function graphsOf(files: readonly Source[]): { ofFiles: Graph; byFolder: Map<string, Graph> } {
  const ofFiles: Graph = new Map();
  const byFolder = new Map<string, Graph>();
  const add = (graph: Graph, from: string, to: string) =>
    graph.set(from, (graph.get(from) ?? new Set<string>()).add(to));
  for (const { path, imports } of files)
    for (const target of imports.files) {
      add(ofFiles, path, target);
      const [from, to] = [path.split('/'), target.split('/')];
      const depth = from.findIndex((name, index) => name !== to[index]);
      const folder = from.slice(0, depth).join('/');
      const graph = byFolder.get(folder) ?? new Map();
      byFolder.set(folder, add(graph, String(from[depth]), String(to[depth])));
    }
  return { ofFiles, byFolder };
}

function tangledFolders(files: readonly Source[]): string[] {
  return [...graphsOf(files).byFolder]
    .filter(([, graph]) => circlesIn(graph).length > 0)
    .map(([folder]) => folder);
}

const production = sourcesIn('src', 'conformance', 'build').filter((source) => !source.isForTests);
const support = sourcesIn('test/support').filter(({ path }) => isSupport(path) && !path.endsWith('.test.ts'));
const simulation = sourcesIn('simulation').filter(
  ({ path }) => !/\.(test|suite|fixture|check)\.ts$/.test(path),
);

it('every import goes in a direction that the design allows', () => {
  const files = [...production, ...support];
  const used = new Set(files.map(({ path }) => rowOf(path)));
  expect(table.filter((row) => !used.has(row))).toEqual([]);
  expect(files.flatMap(misdirected)).toEqual([]);
});

it('no import leads to a higher room of the same part', () => {
  const files = [...production, ...simulation];
  const isThere = (room: string): boolean =>
    files.some(({ path }) => path === room || path.startsWith(`${room}/`));
  const named = Object.entries(levels).flatMap(([part, rooms]) =>
    rooms.split(' ').map((room) => part + room),
  );
  expect(named.filter((room) => !isThere(room))).toEqual([]);
  expect(files.flatMap(upwards)).toEqual([]);
});

it('no file imports itself through others, and no folder has rooms that do', () => {
  const files = [...production, ...simulation, ...sourcesIn('bench')];
  expect(circlesIn(graphsOf(files).ofFiles)).toEqual([]);
  expect(tangledFolders(files).sort()).toEqual(TANGLED);
});

describe('a planted violation is caught', () => {
  it.each([
    ['src/contract/a.ts', "import { hash } from 'ssh2';", 'ssh2'],
    [
      'src/orchestrator/instances/a.ts',
      "export * from '../../drivers/kit/faults.ts';",
      'src/drivers/kit/faults.ts',
    ],
    ['src/orchestrator/http/a.ts', "await import('../../store/a.ts');", 'src/store/a.ts'],
    ['src/drivers/simulator/a.ts', "type Db = import('../../store/db.ts').Db;", 'src/store/db.ts'],
    [
      'src/drivers/libvirt/driver.ts',
      "export type { A } from '../simulator/guest.ts';",
      'src/drivers/simulator/guest.ts',
    ],
    ['conformance/a.ts', "const x = require('../src/contract/errors.ts');", 'src/contract/errors.ts'],
    ['src/cli/a.ts', "import '../../test/support/rows/a.ts';", 'test/support/rows/a.ts'],
    ['src/compose/a.ts', "import '../drivers/a.fixture.ts';", 'src/drivers/a.fixture.ts'],
    ['test/support/time/a.ts', "import '../../../src/compose/a.ts';", 'src/compose/a.ts'],
  ])('%s with %s', (path, text, target) => {
    expect(misdirected(new Source(path, text))).toEqual([`${path} → ${target}`]);
  });

  it('a room that the table does not have, also of a part', () => {
    expect(misdirected(new Source('src/utils/a.ts', ''))).toHaveLength(1);
    expect(upwards(new Source('src/orchestrator/reconciler/a.ts', ''))).toHaveLength(1);
  });

  it('an import from a higher room, and none of the room itself or a lower one', () => {
    const text = "import type { X } from '../steps/a.ts'; import './b.ts'; import '../model/c.ts';";
    expect(upwards(new Source('src/orchestrator/volumes/a.ts', text))).toEqual([
      'src/orchestrator/volumes/a.ts → src/orchestrator/steps/a.ts, which is above it',
    ]);
  });

  it('a circle of files, and one of folders whose files have none', () => {
    const [a, b] = [
      new Source('x/a/1.ts', "import '../b/1.ts';"),
      new Source('x/b/1.ts', "import '../a/1.ts';"),
    ];
    expect(circlesIn(graphsOf([a, b]).ofFiles)).toEqual([['x/a/1.ts', 'x/b/1.ts']]);
    const other = new Source('x/b/2.ts', "import type { X } from '../a/1.ts';");
    expect(circlesIn(graphsOf([a, other]).ofFiles)).toEqual([]);
    expect(tangledFolders([a, other])).toEqual(['x']);
  });

  it('a folder without files, and an import of what an expression says', () => {
    expect(() => sourcesIn('src/nothing')).toThrow('no sources');
    expect(() => new Source('src/a.ts', 'await import(process.argv[2]);').imports).toThrow('expression');
  });
});

it('imports in comments and strings do not count', () => {
  const text = "// import '../store/x.ts';\nexport const text = `import '../store/x.ts'`;";
  expect(misdirected(new Source('src/contract/a.ts', text))).toEqual([]);
});
