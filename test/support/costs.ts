import { appendFileSync, globSync } from 'node:fs';
import type { Reporter, SerializedError, TestModule } from 'vitest/node';
import { LEFT_OUT } from './programs.ts';

/** Files of `npm test` that cost more CPU than this are listed at the end of a run. */
const DEAR_MS = 2_000;
/** One that costs this beside its imports fails the run: it belongs to the integration tests. */
const TOO_DEAR_MS = 5_000;
/** Fixed seeds of a simulation are as long as they must be, and have a limit for all of them. */
const SEEDS = /^simulation\/.*simulation\.test\.ts$/;
const SEEDS_MS = 15_000;

/** What `npm test` does not run, by the file's name, with the command that does. */
const ELSEWHERE = [
  { of: /\.check\.ts$/, what: 'of layout and wording', by: 'check' },
  { of: /\.postgres\.test\.ts$/, what: 'that need PostgreSQL', by: 'test:postgres' },
  { of: /^conformance\/(.*\/)?[^./]+\.test\.ts$/, what: 'of the conformance suite', by: 'test:conformance' },
  { of: /\.(long|lab|browser)\.test\.ts$|\.(matrix|kill|month|pace)\.ts$/, what: 'of proofs', by: 'proofs' },
  { of: /\.\w+\.test\.ts$/, what: 'that need programs or more time', by: 'test:integration' },
];

const seconds = (ms: number): string => (ms / 1000).toFixed(1);

/**
 * Ends a run with what it cost and what it left out, and with the errors outside of tests: they fail the run, and a log
 * that is cut in its middle shows its end.
 */
export default class Costs implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    const dear = modules
      .map((module) => ({
        file: module.relativeModuleId,
        ms: module.meta().cpuMs ?? module.diagnostic().duration,
      }))
      .sort((a, b) => b.ms - a.ms);
    const lines = [
      ...dear.filter(({ ms }) => ms > DEAR_MS).map(({ file, ms }) => `${seconds(ms).padStart(7)} s  ${file}`),
      `CPU time of ${dear.length} files: ${seconds(dear.reduce((sum, { ms }) => sum + ms, 0))} s`,
      ...leftOut(modules),
      ...unhandled.map(
        ({ stack, message }) => `An error outside of tests: ${(stack ?? message).slice(0, 1_600)}`,
      ),
    ];
    count(modules, unhandled.length);
    const problems = [...tooDear(modules), ...missing()];
    if (problems.length > 0) process.exitCode = 1;
    process.stdout.write([...lines, ...problems].map((line) => `${line}\n`).join(''));
  }
}

/** Adds how many tests passed and failed to the file that BERTH_TEST_COUNTS names: .ci/run sums them. */
function count(modules: readonly TestModule[], errors: number): void {
  const file = process.env['BERTH_TEST_COUNTS'];
  if (file === undefined) return;
  const of = (state: 'passed' | 'failed'): number =>
    modules.reduce((sum, { children }) => sum + [...children.allTests(state)].length, 0);
  appendFileSync(file, `${of('passed')} ${of('failed') + errors}\n`);
}

/** One line about the files that a whole run of `npm test` leaves out. */
function leftOut(modules: readonly TestModule[]): string[] {
  const patterns = ['{src,test,simulation,bench,conformance}/**/*.{test,check,matrix,kill,month,pace}.ts'];
  const files = Object.groupBy(
    globSync(patterns),
    (file) => ELSEWHERE.find(({ of }) => of.test(file))?.by ?? '',
  );
  const isWhole = modules.length === files['']?.length && modules[0]?.project.name === 'unit';
  const parts = ELSEWHERE.map(({ what, by }) => `${files[by]?.length ?? 0} ${what} (npm run ${by})`);
  return isWhole ? [`Left out, as each has a command of its own: files ${parts.join(', ')}.`] : [];
}

/** With BERTH_TEST_ALL=1 a program that is not here is a failure; else the tests that need it are left out. */
function missing(): string[] {
  const packages = [...LEFT_OUT].map(([word, name]) => `${word} (Debian: ${name})`);
  if (packages.length === 0) return [];
  const line = `Left out, for want of programs: the tests that need ${packages.join(', ')}.`;
  if (process.env['BERTH_TEST_ALL'] === '1') return [line];
  process.stdout.write(`${line}\n`);
  return [];
}

/** What breaks the limits on CPU, which are those of `npm test`. */
function tooDear(all: readonly TestModule[]): string[] {
  const modules = all.filter(({ project }) => project.name === 'unit');
  const [seeds, others] = [true, false].map((isSeeds) =>
    modules.filter(({ relativeModuleId }) => SEEDS.test(relativeModuleId) === isSeeds),
  );
  const spent = (module: TestModule): number => {
    const { cpuMs = 0, importMs = 0 } = module.meta();
    return cpuMs - importMs;
  };
  const ofSeeds = (seeds ?? []).reduce((ms, module) => ms + spent(module), 0);
  return [
    ...(others ?? [])
      .filter((module) => spent(module) > TOO_DEAR_MS)
      .map(
        (module) =>
          `${module.relativeModuleId} took ${seconds(spent(module))} s of CPU: make it cheaper than ${seconds(TOO_DEAR_MS)} s, or name it ….integration.test.ts`,
      ),
    ...(ofSeeds > SEEDS_MS
      ? [`The seeds of the simulations took ${seconds(ofSeeds)} s of CPU, of ${seconds(SEEDS_MS)}: run fewer`]
      : []),
  ];
}
