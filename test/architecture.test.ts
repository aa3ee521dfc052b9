import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { importsOf } from './support/imports.ts';

/** A place in the house, and what it may import besides itself and libraries. The first row that fits counts. */
interface Place {
  path: RegExp;
  mayImport: readonly RegExp[];
  /** Absent: any library. */
  libraries?: readonly string[];
}

/** What every part is given or made of: time, chance, the log; keys; the server below HTTP. */
const PORTS = /^src\/ports\//;
/** The one port that is a thing itself: what it takes from Node must be taken once, before a test can replace it. */
const REAL_TIMERS = /^src\/ports\/timers\.ts$/;
const KEYS = /^src\/keys\//;
const HTTP = /^src\/http\//;
const WORK = /^src\/work\//;
/** Operators' keys, audit log and what is shown of them, for both products; their pages and API stand on the HTTP kit. */
const OPERATORS = /^src\/operator-kit\/(?!http\/|console\/)/;
const OPERATORS_HTTP = /^src\/operator-kit\//;
const CORE = /^src\/(ports|keys|work|contract|orchestrator\/(?!http\/))/;
/** What an adapter is written against: the records and ports of the orchestrator, and nothing that decides. */
const MODEL = /^src\/((ports|keys|work|contract|orchestrator\/model)\/|operator-kit\/model\.ts$)/;
const CATALOG = /^src\/orchestrator\/catalog\/catalog\.ts$/;
const CLOUD_INIT = /^src\/orchestrator\/cloud-init\//;
/** Everything but the command line, which nothing imports but `berth.ts` and `main.ts`. */
const COMPOSITION = [/^src\/(?!cli\/|(berth|main)\.ts$)/];

/** The import directions of the design, one row for each place. */
const places: readonly Place[] = [
  { path: REAL_TIMERS, mayImport: [], libraries: ['node:'] },
  { path: PORTS, mayImport: [REAL_TIMERS], libraries: [] },
  { path: KEYS, mayImport: [PORTS], libraries: ['node:'] },
  { path: HTTP, mayImport: [PORTS] },
  { path: WORK, mayImport: [PORTS] },
  { path: /^src\/contract\//, mayImport: [], libraries: ['zod', 'node:'] },
  {
    path: /^src\/operator-kit\/(console|http)\//,
    mayImport: [PORTS, KEYS, HTTP, /^src\/contract\//, OPERATORS],
  },
  { path: /^src\/operator-kit\//, mayImport: [PORTS, KEYS, /^src\/contract\//], libraries: ['zod', 'node:'] },
  { path: /^src\/orchestrator\/console\//, mayImport: [CORE, HTTP, OPERATORS_HTTP] },
  { path: /^src\/orchestrator\/http\//, mayImport: [CORE, HTTP, OPERATORS_HTTP, /^src\/orchestrator\//] },
  { path: /^src\/orchestrator\//, mayImport: [CORE, OPERATORS] },
  {
    path: /^src\/platform-model\//,
    mayImport: [
      PORTS,
      /^src\/work\/due-queue\.ts$/,
      /^src\/contract\//,
      /^src\/orchestrator\/model\/(platform-driver|inventory)\.ts$/,
    ],
    libraries: [],
  },
  { path: /^src\/drivers\/kit\//, mayImport: [MODEL, CATALOG, /^src\/platform-model\//] },
  { path: /^src\/drivers\/registry\.ts$/, mayImport: [/^src\/drivers\/(kit\/|[^/]+\/driver\.ts$)/] },
  {
    path: /^src\/drivers\/([^/]+)\//,
    mayImport: [MODEL, CATALOG, CLOUD_INIT, /^src\/(drivers\/kit|platform-model)\//],
  },
  {
    path: /^src\/store\//,
    mayImport: [MODEL, /^src\/marketplace\/model\//],
  },
  { path: /^src\/ssh\//, mayImport: [PORTS, /^src\/contract\//] },
  {
    path: /^src\/config\//,
    mayImport: [
      /^src\/contract\//,
      /^src\/orchestrator\/catalog\//,
      /^src\/drivers\/(registry|kit\/driver-definition)\.ts$/,
      /^src\/marketplace\/(model\/options|providers\/profile)\.ts$/,
      /^src\/client\/base-url\.ts$/,
      /^src\/work\/lease-time\.ts$/,
      PORTS,
    ],
  },
  { path: /^src\/runtime\//, mayImport: [PORTS] },
  {
    path: /^src\/client\/index\.ts$/,
    mayImport: [PORTS, /^src\/(contract|client)\//, /^src\/runtime\/system\.ts$/],
  },
  { path: /^src\/client\//, mayImport: [PORTS, /^src\/contract\//] },
  {
    path: /^src\/marketplace\/(http|console)\//,
    mayImport: [PORTS, KEYS, HTTP, WORK, OPERATORS_HTTP, /^src\/(contract|client|marketplace)\//],
  },
  {
    path: /^src\/marketplace\//,
    mayImport: [PORTS, KEYS, WORK, OPERATORS, /^src\/(contract|client)\//, /^src\/marketplace\/(?!http\/)/],
  },
  { path: /^src\/compose\//, mayImport: COMPOSITION },
  {
    // Commands run use cases and print what these return. What a server is made of is compose's.
    path: /^src\/cli\//,
    mayImport: [
      PORTS,
      /^src\/(compose|config|contract|runtime)\//,
      /^src\/(orchestrator|marketplace)\/(?!http\/)/,
      OPERATORS,
      /^src\/client\/orchestrator-client\.ts$/,
    ],
    libraries: ['commander', 'yaml', 'node:'],
  },
  {
    // What is wired to what is compose's.
    path: /^src\/sandbox\//,
    mayImport: [
      MODEL,
      CATALOG,
      HTTP,
      OPERATORS,
      /^src\/(platform-model|client)\//,
      /^src\/marketplace\/(contract|providers)\//,
      // The control client has the calls of both operator APIs.
      /^src\/(orchestrator|marketplace)\/operate\/(operations|commands)\.ts$/,
      // The control API answers errors as the providers do, and the journal knows the published routes.
      /^src\/orchestrator\/http\/errors\.ts$/,
      /^src\/config\/package-root\.ts$/,
      // A recording is redacted as a report of the suite is.
      /^conformance\/text\/redact\.ts$/,
    ],
  },
  {
    path: /^test\/support\/(time|rows|doubles)\//,
    mayImport: [
      /^src\/(?!(cli|compose|config)\/|(berth|main|index)\.ts$)/,
      /^test\/support\/(time|rows|doubles)\//,
    ],
  },
  { path: /^src\/berth\.ts$/, mayImport: [/^src\/(cli|compose|config|runtime)\//, /^conformance\/cli\.ts$/] },
  { path: /^src\/main\.ts$/, mayImport: [/^src\/(berth\.ts$|(cli|runtime)\/)/] },
  { path: /^src\/index\.ts$/, mayImport: COMPOSITION },
  { path: /^conformance\//, mayImport: [] },
];

/** These are built; a list of files without one of them was not read right. */
const BUILT = [
  ...['src/ports/', 'src/keys/', 'src/http/'],
  ...['src/contract/', 'src/orchestrator/http/', 'src/orchestrator/platform/', 'src/drivers/simulator/'],
  ...['src/platform-model/', 'src/sandbox/'],
  ...[
    'src/store/',
    'src/ssh/',
    'src/config/',
    'src/runtime/',
    'src/compose/',
    'src/cli/',
    'src/berth.ts',
    'src/main.ts',
    'src/index.ts',
  ],
  'src/operator-kit/',
  'test/support/time/',
  ...['src/client/', 'src/marketplace/http/', 'src/marketplace/deployments/', 'src/store/marketplace/'],
];

/** Tests, the simulation, shared suites and fixtures may import anything, and are imported by their own kind only. */
const isForTests = (path: string): boolean =>
  /\.(test|suite|fixture)\.ts$/.test(path) || /^(test|simulation)\//.test(path);

/** What tests share. It has a row of the table all the same: it knows rooms, not what is composed of them. */
const isTesting = (path: string): boolean =>
  /^test\/support\/(time|rows|doubles)\//.test(path) && !path.endsWith('.test.ts');

type Files = ReadonlyMap<string, string>;

function violations(files: Files): string[] {
  const sources = [...files].filter(([path]) => !isForTests(path) || isTesting(path));
  if (sources.length === 0) throw new Error('there are no files to look at');
  return sources.flatMap(([path, text]) => violationsOf(path, text));
}

function placeOf(path: string): Place | undefined {
  return places.find((place) => place.path.test(path));
}

function violationsOf(path: string, text: string): string[] {
  const place = placeOf(path);
  if (place === undefined) return [`${path} is in no place of the table`];
  const { files, packages } = importsOf(path, text);
  const isOwn = (target: string): boolean =>
    placeOf(target) === place && place.path.exec(target)?.[0] === place.path.exec(path)?.[0];
  const isAllowed = (target: string): boolean =>
    isForTests(target)
      ? isTesting(path) && isTesting(target)
      : isOwn(target) || place.mayImport.some((allowed) => allowed.test(target));
  return [
    ...files.filter((target) => !isAllowed(target)).map((target) => `${path} → ${target}`),
    ...packages
      .filter((name) => place.libraries !== undefined && !place.libraries.includes(name))
      .map((name) => `${path} → ${name}`),
  ];
}

function readSources(): Files {
  const root = join(import.meta.dirname, '..');
  const patterns = ['src', 'test/support', 'conformance'].filter((folder) => existsSync(join(root, folder)));
  const paths = globSync(
    patterns.map((folder) => `${folder}/**/*.{ts,mts,cts,tsx,js,mjs}`),
    { cwd: root },
  );
  return new Map(paths.map((path) => [path, readFileSync(join(root, path), 'utf8')]));
}

it('every import goes in a direction that the design allows', () => {
  const files = readSources();
  const missing = BUILT.filter((start) => ![...files.keys()].some((path) => path.startsWith(start)));
  expect(missing).toEqual([]);
  expect(violations(files)).toEqual([]);
});

it('refuses to judge when it sees no files', () => {
  expect(() => violations(new Map())).toThrow('no files');
  expect(() => violations(new Map([['src/store/a.test.ts', '']]))).toThrow('no files');
});

it.each([
  ['src/contract/a.ts', "import { x } from '../orchestrator/ports/store.ts';"],
  ['src/contract/a.ts', "import { hash } from 'ssh2';"],
  ['src/orchestrator/instances/a.ts', "import type { Db } from '../../store/sqlite/db.ts';"],
  ['src/orchestrator/instances/a.ts', "export * from '../../drivers/kit/faults.ts';"],
  ['src/orchestrator/instances/a.ts', "import { x } from '../../marketplace/orders.ts';"],
  ['src/orchestrator/instances/a.ts', "import { x } from '../../config/load.ts';"],
  ['src/orchestrator/instances/a.ts', "import { x } from '../http/app.ts';"],
  ['src/orchestrator/operate/a.ts', "import { x } from '../../operator-kit/console/app.ts';"],
  ['src/operator-kit/a.ts', "import { x } from '../orchestrator/model/store.ts';"],
  ['src/store/queries/a.ts', "import { x } from '../../operator-kit/audit.ts';"],
  ['src/orchestrator/http/app.ts', "const db = await import('../../store/sqlite/store.ts');"],
  ['src/orchestrator/http/routes/a.ts', "import '../../../store/sqlite/store.ts';"],
  ['src/drivers/libvirt/driver.ts', "export type { Guest } from '../simulator/guest.ts';"],
  ['src/drivers/simulator/platform/simulator.ts', "type Db = import('../../store/sqlite/db.ts').Db;"],
  ['src/drivers/kit/a.ts', "import { x } from '../simulator/driver.ts';"],
  ['src/platform-model/a.ts', "import { x } from '../drivers/kit/faults.ts';"],
  ['src/platform-model/a.ts', "import { readFileSync } from 'node:fs';"],
  ['src/platform-model/a.ts', "import type { X } from '../orchestrator/model/store.ts';"],
  ['src/store/sqlite/a.ts', "import { x } from '../../drivers/kit/faults.ts';"],
  ['src/store/sqlite/a.ts', "import { x } from '../../orchestrator/http/deps.ts';"],
  ['src/store/queries/a.ts', "import { x } from '../../orchestrator/instances/transition.ts';"],
  ['src/drivers/simulator/a.ts', "import { x } from '../../orchestrator/steps/settle.ts';"],
  ['src/sandbox/a.ts', "import { x } from '../compose/orchestrator/orchestrator.ts';"],
  ['src/sandbox/a.ts', "import { x } from '../store/sqlite/store.ts';"],
  ['src/orchestrator/http/a.ts', "import { x } from '../../sandbox/router.ts';"],
  ['src/ssh/a.ts', "import type { X } from '../orchestrator/model/store.ts';"],
  ['src/ssh/a.ts', "import { x } from '../store/sqlite/store.ts';"],
  ['src/config/a.ts', "import { x } from '../drivers/simulator/driver.ts';"],
  ['src/config/a.ts', "import { x } from '../drivers/simulator/options.ts';"],
  ['src/drivers/registry.ts', "import { x } from './simulator/options.ts';"],
  ['src/drivers/registry.ts', "import { x } from '../config/schema.ts';"],
  ['src/config/a.ts', "import { x } from '../orchestrator/instances/create.ts';"],
  ['src/runtime/a.ts', "import { x } from '../contract/errors.ts';"],
  ['src/ports/a.ts', "import { z } from 'zod';"],
  ['src/http/a.ts', "import { x } from '../contract/errors.ts';"],
  ['src/work/a.ts', "import { x } from '../orchestrator/model/work.ts';"],
  ['src/keys/a.ts', "import { x } from '../http/server.ts';"],
  ['src/store/marketplace/a.ts', "import { x } from '../../marketplace/deployments/create.ts';"],
  ['src/marketplace/deployments/a.ts', "import { x } from '../http/app.ts';"],
  ['src/client/a.ts', "import { x } from '../orchestrator/ports/store.ts';"],
  ['src/marketplace/a.ts', "import { x } from '../orchestrator/ports/store.ts';"],
  ['src/marketplace/a.ts', "import { x } from '../drivers/kit/faults.ts';"],
  ['conformance/a.ts', "import { x } from '../src/contract/errors.ts';"],
  ['conformance/checks/a.ts', "const x = require('../../src/contract/errors.ts');"],
  ['src/compose/a.ts', "import { x } from '../../conformance/cli.ts';"],
  ['src/compose/a.ts', "import { x } from '../cli/print-records.ts';"],
  ['src/index.ts', "export { serveCommand } from './cli/serve-command.ts';"],
  ['src/index.ts', "export { main } from './berth.ts';"],
  ['src/cli/a.ts', "import { x } from '../store/sqlite/store.ts';"],
  ['src/cli/a.ts', "const x = await import('../drivers/simulator/driver.ts');"],
  ['src/cli/a.ts', "import { x } from '../http/server.ts';"],
  ['src/cli/a.ts', "import { x } from '../orchestrator/http/app.ts';"],
  ['src/cli/a.ts', "import { hash } from 'ssh2';"],
  ['src/cli/a.ts', "import { x } from '../../conformance/cli.ts';"],
  ['src/berth.ts', "import { run } from '../conformance/run/run.ts';"],
  ['src/compose/a.ts', "import { x } from '../drivers/simulator/simulator.fixture.ts';"],
  ['src/cli/a.ts', "import { x } from '../../test/support/keys.ts';"],
  ['src/cli/a.ts', "import { run } from '../../simulation/orchestrator/run.ts';"],
  ['src/compose/a.ts', "import { VirtualClock } from '../../test/support/time/virtual-clock.ts';"],
  ['conformance/a.ts', "import { VirtualClock } from './support/time/virtual-clock.ts';"],
  ['test/support/time/a.ts', "import { x } from '../../../src/compose/orchestrator.ts';"],
  ['test/support/rows/a.ts', "import { x } from '../orchestrator.ts';"],
  ['src/utils/a.ts', 'export const x = 1;'],
])('catches a planted violation: %s with %s', (path, text) => {
  expect(violations(new Map([[path, text]]))).toHaveLength(1);
});

it.each([
  ['src/contract/a.ts', "import { z } from 'zod'; import { hash } from 'node:crypto'; import './b.ts';"],
  ['src/orchestrator/http/routes/a.ts', "import { x } from '../../instances/create.ts'; import 'hono';"],
  ['src/drivers/libvirt/driver.ts', "import { x } from '../kit/faults.ts'; import './client.ts';"],
  ['src/config/a.ts', "import { drivers } from '../drivers/registry.ts';"],
  ['src/drivers/registry.ts', "import { libvirt } from './libvirt/driver.ts';"],
  ['src/compose/a.ts', "import { x } from '../orchestrator/http/app.ts'; import '../store/sqlite/store.ts';"],
  [
    'src/cli/a.ts',
    "import { x } from '../compose/stores/orchestrator.ts'; import '../orchestrator/accounts/accounts.ts';",
  ],
  ['src/marketplace/a.ts', "import { x } from '../client/client.ts';"],
  [
    'test/support/doubles/a.ts',
    "import './b.ts'; import { x } from '../../../src/platform-model/platform.ts';",
  ],
  ['src/berth.ts', "const { conformance } = await import('../conformance/cli.ts');"],
  ['src/contract/a.ts', "// import '../store/x.ts';\nexport const text = `import '../store/x.ts'`;"],
])('lets pass what is allowed: %s with %s', (path, text) => {
  expect(violations(new Map([[path, text]]))).toEqual([]);
});

it('does not guess what an import by an expression means', () => {
  const files = new Map([['src/cli/a.ts', 'const x = await import(process.argv[2]);']]);
  expect(() => violations(files)).toThrow('expression');
});

/** These make visible what a terminal would act on; all else prints with them. console.* is refused by the linter. */
const PRINTERS = ['src/runtime/print.ts', 'src/runtime/log.ts', 'conformance/cli/terminal.ts'];
const WRITES =
  /\bprocess\b[^;]{0,40}\bstd(?:out|err)\b|\bstd(?:out|err)\b[^;]{0,40}=\s*process\b|\bfd: [12]\b|\bwriteSync\(\s*[12]\b/;

/** Programs of a person print; fixtures and mutants are none of them. */
const printsPastPrinters = ([path, text]: [string, string]): boolean =>
  !isForTests(path) &&
  !path.startsWith('conformance/mutants/') &&
  !PRINTERS.includes(path) &&
  WRITES.test(text);

it('only the printers write to the terminal', () => {
  const files = [...readSources()];
  expect(
    PRINTERS.filter((path) => !files.some(([known, text]) => known === path && WRITES.test(text))),
  ).toEqual([]);
  expect(files.filter(printsPastPrinters).map(([path]) => path)).toEqual([]);
});

it.each([
  'process.stdout.write(name);',
  'process?.stderr?.write(name);',
  "process['stdout'].write(name);",
  'const { stdin, stderr } = process;',
  'const out = process\n  .stdout;',
  'destination({ fd: 1 });',
  'writeSync(2, name);',
])('finds a write past the printers: %s', (text) => {
  expect(printsPastPrinters(['src/cli/a-command.ts', text])).toBe(true);
  expect(printsPastPrinters(['src/cli/a-command.ts', 'printLine(name);'])).toBe(false);
});

/** Who records a request to remove something. Nothing else makes an order: not an absence, a loss or a listing. */
const RECORDERS = [
  // A tenant's or an operator's DELETE.
  'src/orchestrator/instances/destroy.ts',
  'src/orchestrator/volumes/delete.ts',
  'src/orchestrator/operate/actions/instances.ts',
  // What a failed create made, or an earlier attempt.
  'src/orchestrator/steps/fail.ts',
  'src/orchestrator/steps/volume/create.ts',
  'src/orchestrator/steps/volume/move.ts',
  'src/orchestrator/platform/superseded-attempts.ts',
  // A policy of the operator.
  'src/orchestrator/steps/instance/hold.ts',
  'src/orchestrator/reconciliation/orphan-policy.ts',
  // `berth driver test`, and the simulator's other process, which reads an order from the wire.
  'src/drivers/kit/checks/bench.ts',
  'src/drivers/simulator/remote/protocol.ts',
];

it('only a worker of the marketplace calls a provider', () => {
  const root = join(import.meta.dirname, '..');
  const callers = globSync('src/marketplace/**/*.ts', { cwd: root })
    .filter((file) => !/\.(test|suite|fixture)\.ts$/.test(file) && !file.startsWith('src/marketplace/sync/'))
    .filter((file) => /\bclient\s*\.\s*(?!close\b)\w+\(/.test(readFileSync(join(root, file), 'utf8')));
  // Its worker reads the catalog through this.
  expect(callers).toEqual(['src/marketplace/providers/read-catalog.ts']);
});

it('an order to destroy is made only where a request for it is recorded [order-names-request]', () => {
  const isTest = /\.(test|suite|fixture)\.ts$/;
  const root = join(import.meta.dirname, '..');
  const makers = globSync('src/**/*.ts', { cwd: root })
    .filter((file) => !isTest.test(file) && file !== 'src/orchestrator/model/destroy-order.ts')
    .filter((file) => /\brecordedOrder\b/.test(readFileSync(join(root, file), 'utf8')));
  expect(makers.sort()).toEqual([...RECORDERS].sort());
});
