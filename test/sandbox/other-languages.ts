import { spawn, spawnSync } from 'node:child_process';
import { cpSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  BerthProcess,
  compileCache,
  type Ended,
  mainFile,
  temporaryFolder,
} from '../support/processes/process.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
/** A last resort: less than the limit of the tests. */
const RUN_LIMIT_MS = 800_000;
const JUNIT = '/usr/share/java/junit-platform-console-standalone.jar';
const works = (program: string, ...args: string[]): boolean => spawnSync(program, args).status === 0;

interface Helper {
  /** Debian's packages. */
  packages: string;
  isThere: boolean;
  suite: readonly string[];
  /** What it prints if all pass. */
  green: RegExp;
  /** A file of test/sandbox/failing, where it belongs, and what runs its tests alone. */
  failing: { file: string; folder: string; suite: readonly string[]; red: RegExp };
}

const pytest = ['/usr/bin/python3', '-m', 'pytest', '-p', 'no:cacheprovider', '-q'];
const goTest = ['go', 'test', '-race', '-count=1', '-parallel=4'];
const junit = ['./run.sh', '--disable-ansi-colors', '--details=summary'];

/** By their folders in examples/. */
export const helpers: Readonly<Record<string, Helper>> = {
  pytest: {
    packages: 'python3-pytest',
    isThere: works('/usr/bin/python3', '-m', 'pytest', '--version'),
    suite: pytest,
    green: /^15 passed in /m,
    failing: {
      file: 'test_failing.py',
      folder: '.',
      suite: [...pytest, 'test_failing.py'],
      red: /^3 failed, 1 passed, 1 error in /m,
    },
  },
  go: {
    packages: 'golang-go, gcc and libc6-dev',
    isThere: works('go', 'version') && works('gcc', '--version'),
    suite: goTest,
    green: /^ok /m,
    failing: {
      file: 'failing_test.go',
      folder: '.',
      suite: [...goTest, '-run=^Test(AFault|AMachine|AVerdict|ARequest)That'],
      red: /(--- FAIL: [\s\S]*){4}/,
    },
  },
  junit: {
    packages: 'junit5 and default-jdk-headless',
    isThere: works('javac', '--version') && existsSync(JUNIT),
    suite: junit,
    green: /18 tests successful[\s\S]* 0 tests failed/,
    failing: {
      file: 'FailingTest.java',
      folder: 'example',
      suite: [...junit, '--include-classname=.*FailingTest'],
      red: / 0 tests successful[\s\S]* 4 tests failed/,
    },
  },
};

/** Runs the suite of a helper in a copy of its folder, or the tests that must fail. */
export async function runHelper(
  name: string,
  { failing = false, env = {} }: { failing?: boolean; env?: Record<string, string> } = {},
): Promise<Pick<Ended, 'code' | 'stdout'>> {
  const helper = helpers[name];
  if (helper === undefined) throw new Error(`there is no examples/${name}`);
  using folder = temporaryFolder();
  cpSync(join(root, 'examples', name), folder.path, { recursive: true });
  const { file, folder: of } = helper.failing;
  if (failing) cpSync(join(root, 'test/sandbox/failing', file), join(folder.path, of, file));
  return await run(failing ? helper.failing.suite : helper.suite, folder.path, env);
}

/** Runs a program to its end; its errors are in its output. */
export async function run(
  [program = '', ...args]: readonly string[],
  cwd = root,
  env: Record<string, string> = {},
): Promise<Pick<Ended, 'code' | 'stdout'>> {
  const { PATH = '', HOME = '' } = process.env;
  const berth = { BERTH: `${process.execPath} ${mainFile}`, NODE_COMPILE_CACHE: compileCache };
  const child = spawn(program, args, {
    cwd,
    env: { PATH, HOME, NO_COLOR: '1', GOPROXY: 'off', GOFLAGS: '', ...berth, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    // The sandboxes that it started end with it.
    timeout: RUN_LIMIT_MS,
  });
  let stdout = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text) => {
      stdout += text;
    });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject).once('close', resolve);
  });
  return { code, stdout };
}

/** A sandbox for the suites, and the environment in which they join it. */
export async function startJoined(): Promise<{ sandbox: BerthProcess; env: Record<string, string> }> {
  const flags = [
    '--port',
    '0',
    '--json',
    '--clock',
    'virtual',
    '--providers',
    'd',
    '--timing',
    'boot=50s-90s',
  ];
  const sandbox = new BerthProcess(['sandbox', ...flags]);
  const line = await sandbox.waitForOutput((stdout) => /^\{.*\}$/m.exec(stdout)?.[0]);
  const { origin, control } = JSON.parse(line);
  return { sandbox, env: { BERTH_SANDBOX: origin, BERTH_CONTROL_KEY: control.api_key } };
}
