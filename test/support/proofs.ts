/** What takes longer than .ci/run has time for, and is run by name: `npm run proofs -- NAME`. */
export interface Proof {
  /** What it finds that .ci/run does not. */
  finds: string;
  /** A change in one of these calls for it. */
  folders: readonly string[];
  /** On two quiet cores. */
  minutes: number;
  /** How many seeds it runs; each run takes the next ones. */
  seeds?: number;
  parts(firstSeed: number, glob: (pattern: string) => string[]): Part[];
}

/** One command: it is not run again at a commit at which it was green. */
export interface Part {
  id: string;
  command: readonly string[];
}

const BATCH = 50;
/** How many of the seeds of a simulation run on PostgreSQL: the last ones. */
const ON_POSTGRES = 200;
/** Files that share one start of vitest, which builds the programs that they run. */
const FILES = 8;
const VITEST = ['vitest', 'run', '--project'];

/** New seeds, in batches; `flags` choose the simulation. */
function simulation(
  finds: string,
  folders: readonly string[],
  {
    flags = [],
    seeds,
    commands,
    minutes,
  }: { flags?: string[]; seeds: number; commands: number; minutes: number },
): Proof {
  return {
    finds,
    folders: ['simulation', ...folders],
    minutes,
    seeds,
    parts: (firstSeed) =>
      Array.from({ length: Math.ceil(seeds / BATCH) }, (_, batch) => {
        const first = firstSeed + batch * BATCH;
        const count = Math.min(BATCH, seeds - batch * BATCH);
        const isOnPostgres = batch * BATCH >= seeds - ON_POSTGRES;
        return {
          id: `seeds ${first} to ${first + count - 1}${isOnPostgres ? ' on PostgreSQL' : ''}`,
          command: [
            ...['node', 'simulation/cli.ts', ...flags, ...(isOnPostgres ? ['--postgres'] : [])],
            ...['--seed', `${first}`, '--seeds', `${count}`, '--commands', `${commands}`],
          ],
        };
      }),
  };
}

/** Files of a project of vitest, some at a time. */
function files(
  finds: string,
  folders: readonly string[],
  {
    project,
    pattern,
    minutes,
    not = /^$/,
  }: { project: string; pattern: string; minutes: number; not?: RegExp },
): Proof {
  return {
    finds,
    folders,
    minutes,
    parts: (_firstSeed, glob) => {
      const all = glob(pattern).filter((file) => !not.test(file));
      return Array.from({ length: Math.ceil(all.length / FILES) }, (_, part) => {
        const some = all.slice(part * FILES, (part + 1) * FILES);
        return { id: some.join(' '), command: [...VITEST, project, ...some] };
      });
    },
  };
}

/** Commands, each of them a part. */
function commands(finds: string, folders: readonly string[], minutes: number, ...lines: string[]): Proof {
  return { finds, folders, minutes, parts: () => lines.map((id) => ({ id, command: id.split(' ') })) };
}

const lab = (finds: string, folders: readonly string[], minutes: number, ...parts: string[]): Proof =>
  commands(finds, folders, minutes, ...parts.map((part) => `test/lab/run.sh ${part}`));

const labFiles = (engine: string, ...names: string[]): string =>
  names.map((name) => `test/lab/${engine}/${name}.lab.test.ts`).join(' ');

const CORE = ['src/orchestrator', 'src/work', 'src/store', 'src/platform-model'];
const MARKET = ['src/marketplace', 'src/store/marketplace', 'src/client'];
const ENGINE = { seeds: 500, commands: 60, minutes: 25 };

export const proofs: Readonly<Record<string, Proof>> = {
  'seeds-orchestrator': simulation('interleavings of the orchestrator', CORE, {
    seeds: 2_000,
    commands: 300,
    minutes: 25,
  }),
  'seeds-platforms': simulation('faults of one platform that reach another', CORE, {
    flags: ['--platforms'],
    seeds: 1_000,
    commands: 200,
    minutes: 20,
  }),
  'seeds-hosts': simulation('hosts that fall silent, move and return', CORE, {
    flags: ['--hosts'],
    seeds: 1_000,
    commands: 120,
    minutes: 20,
  }),
  'seeds-marketplace': simulation('interleavings of the marketplace, money included', MARKET, {
    flags: ['--marketplace'],
    seeds: 2_000,
    commands: 60,
    minutes: 25,
  }),
  ...Object.fromEntries(
    ['libvirt', 'incus', 'exec', 'openstack'].map((engine) => [
      `seeds-${engine}`,
      simulation(
        `interleavings of the real driver of ${engine}`,
        [`src/drivers/${engine}`, 'src/drivers/kit'],
        {
          ...ENGINE,
          flags: ['--engine', engine],
        },
      ),
    ]),
  ),
  'planted-faults': commands(
    'a simulation that has become blind to a planted fault',
    ['simulation'],
    25,
    'node simulation/mutants/cli.ts',
  ),
  'long-processes': files('what only real processes and disks do', ['src/cli', 'src/compose', 'src/store'], {
    project: 'long',
    pattern: 'test/process/*.long.test.ts',
    minutes: 15,
  }),
  'long-house': files('what takes minutes, real time or memory', ['src', 'test', 'examples'], {
    project: 'long',
    pattern: '{src,conformance,simulation,test}/**/*.long.test.ts',
    not: /^test\/process\//,
    minutes: 25,
  }),
  matrix: files('a check that a mutant or a lawful variation deceives', ['conformance'], {
    project: 'matrix',
    pattern: 'conformance/**/*.matrix.ts',
    minutes: 12,
  }),
  kill: files(
    'a killed run of the suite that leaves a machine',
    ['conformance/resources', 'conformance/run'],
    {
      project: 'kill',
      pattern: 'test/process/*.kill.ts',
      minutes: 10,
    },
  ),
  month: files('a monitor that misjudges a provider within weeks', ['conformance/monitor'], {
    project: 'month',
    pattern: 'test/process/*.month.ts',
    minutes: 10,
  }),
  pace: files('limits of time that only real time breaks', ['conformance/scenarios', 'conformance/waiting'], {
    project: 'pace',
    pattern: 'test/process/*.pace.ts',
    minutes: 10,
  }),
  browser: files(
    'pages that a browser shows otherwise',
    ['src/orchestrator/console', 'src/marketplace/console', 'conformance/report'],
    {
      project: 'browser',
      pattern: '{src,conformance,test}/**/*.browser.test.ts',
      minutes: 3,
    },
  ),
  loaded: commands(
    'tests that a busy machine turns red',
    ['test', 'src/http', 'src/ssh'],
    10,
    'node test/loaded.ts --times 3',
  ),
  clients: commands(
    'clients of the sandbox that disturb each other',
    ['src/sandbox', 'examples'],
    15,
    'node test/loaded.ts --project long --times 20 test/sandbox/clients.long.test.ts',
  ),
  soak: commands('books that drift under load and kills', MARKET, 15, 'node test/soak/soak.ts --minutes 10'),
  fuzz: {
    finds: 'replies and accepted requests that the published document does not allow',
    folders: ['openapi', 'src/http', 'src/contract', 'src/orchestrator', 'src/marketplace', 'src/store'],
    minutes: 15,
    seeds: 1,
    parts: (seed) =>
      [['SQLite'], ['PostgreSQL', '--postgres']].map(([id = '', ...flags]) => ({
        id,
        command: ['node', 'test/fuzz/fuzz.ts', '--seed', `${seed}`, ...flags],
      })),
  },
  scale: commands('what costs more than its work as it grows', ['src'], 20, 'node bench/scale.ts'),
  benches: commands(
    'a hot path that became slower',
    ['src/http', 'src/orchestrator', 'src/marketplace'],
    10,
    'node bench/polled-read.ts',
    'node bench/start.ts',
  ),
  'lab-serve': lab(
    'a server on real engines',
    ['src/drivers/libvirt', 'src/drivers/incus'],
    15,
    labFiles('libvirt', 'serve'),
    labFiles('incus', 'serve'),
  ),
  'lab-drivers': lab(
    'calls that real engines answer otherwise',
    ['src/drivers/libvirt', 'src/drivers/incus', 'src/drivers/kit'],
    20,
    labFiles('libvirt', 'driver', 'startable', 'full'),
    labFiles('incus', 'driver'),
  ),
  'lab-interrupted': lab(
    'a life on real engines, ended at each step',
    ['src/drivers/libvirt', 'src/drivers/incus', 'src/orchestrator/steps'],
    15,
    labFiles('libvirt', 'interrupted'),
    labFiles('incus', 'interrupted'),
  ),
  'lab-rest': lab(
    'several hosts, people behind its back',
    ['src/drivers/libvirt'],
    20,
    labFiles('libvirt', 'fleet', 'behind'),
  ),
  'lab-openstack': lab(
    'the how-to and a server on the real services',
    ['src/drivers/openstack'],
    20,
    labFiles('openstack', 'how-to', 'serve'),
  ),
  'lab-openstack-behind': lab(
    'people behind its back, on the services',
    ['src/drivers/openstack'],
    15,
    `${labFiles('openstack', 'driver')} -t behind.the.back`,
  ),
  'lab-openstack-suite': lab(
    'the shared suite of drivers on the services',
    ['src/drivers/openstack'],
    30,
    `${labFiles('openstack', 'driver')} -t with.boot.volumes`,
  ),
};
