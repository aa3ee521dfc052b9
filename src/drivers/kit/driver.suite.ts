import { afterEach, beforeEach, describe, it } from 'vitest';
import type { DriverContext } from './checks/bench.ts';
import { runCheck } from './checks/check.ts';
import { driverChecks } from './checks/index.ts';

export type { DriverContext } from './checks/bench.ts';

export interface DriverSuiteHooks {
  setup: () => Promise<DriverContext>;
  /** Called after each check; everything that `setup` opened is to be closed. */
  teardown: (context: DriverContext) => Promise<void>;
  /** How long one check may take in real time, where it is about a real engine. */
  timeoutMs?: number;
}

/** The behaviour that the core relies on, for every driver. */
export function describeDriver(name: string, { setup, teardown, timeoutMs }: DriverSuiteHooks): void {
  describe(`${name}, as a platform driver`, {
    ...(timeoutMs !== undefined && { timeout: timeoutMs }),
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
