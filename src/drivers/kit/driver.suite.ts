import { afterEach, beforeEach, describe, it } from 'vitest';
import type { DriverContext } from './checks/bench.ts';
import { runCheck } from './checks/check.ts';
import { driverChecks } from './checks/index.ts';

export type { DriverContext } from './checks/bench.ts';

export interface DriverSuiteHooks {
  setup: () => Promise<DriverContext>;
  /** Called after each check. It must close everything that `setup` opened. */
  teardown: (context: DriverContext) => Promise<void>;
  /** Time limit of a check in real time, for drivers of real platforms. */
  timeoutMs?: number;
}

export function describeDriver(name: string, { setup, teardown, timeoutMs }: DriverSuiteHooks): void {
  describe(`${name}, as a platform driver`, {
    timeout: timeoutMs,
  }, () => {
    let context: DriverContext;
    beforeEach(async () => {
      context = await setup();
    }, timeoutMs);
    afterEach(() => teardown(context), timeoutMs);

    for (const check of driverChecks)
      it(check.title, async ({ skip }) => {
        const result = await runCheck(check, context);
        if (result.outcome === 'untried') skip(result.reason);
        if (result.outcome === 'failed') throw new Error(`${result.problem}\n${check.why}`);
      });
  });
}
