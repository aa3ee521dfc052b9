import type { Reporter, SerializedError, TestModule } from 'vitest/node';

const SHOWN = 20;

/**
 * Prints at the end of a run what each test file took, the dearest first, and once more the errors outside of tests:
 * they fail the run, and a log that is cut in its middle shows its end.
 */
export default class Costs implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    const costs = modules
      .map((module) => {
        const { collectDuration, setupDuration, duration } = module.diagnostic();
        return { file: module.relativeModuleId, loadMs: collectDuration + setupDuration, testsMs: duration };
      })
      .sort((a, b) => b.loadMs + b.testsMs - (a.loadMs + a.testsMs));
    const line = (tests: string, load: string, file: string): string =>
      `${tests.padStart(9)}${load.padStart(9)}  ${file}\n`;
    const seconds = (ms: number): string => (ms / 1000).toFixed(1);
    const sum = (of: 'testsMs' | 'loadMs', from = 0): number =>
      costs.slice(from).reduce((ms, cost) => ms + cost[of], 0);
    const rest = costs.length - SHOWN;
    process.stdout.write(
      [
        '\nWhat each file took, in seconds\n',
        line('tests', 'loading', 'file'),
        ...costs
          .slice(0, SHOWN)
          .map(({ file, testsMs, loadMs }) => line(seconds(testsMs), seconds(loadMs), file)),
        ...(rest > 0
          ? [line(seconds(sum('testsMs', SHOWN)), seconds(sum('loadMs', SHOWN)), `${rest} more`)]
          : []),
        line(seconds(sum('testsMs')), seconds(sum('loadMs')), `all ${costs.length}`),
      ].join(''),
    );
    for (const error of unhandled)
      process.stdout.write(
        `\nAn error outside of tests: ${(error.stack ?? error.message).slice(0, 1_600)}\n`,
      );
  }
}
