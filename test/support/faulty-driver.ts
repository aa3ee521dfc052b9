import { aroundCalls } from '../../src/drivers/kit/around-calls.ts';
import type { Call, PlatformDriver } from '../../src/orchestrator/model/platform-driver.ts';
import { type DriverCall, FaultInjector, type FaultPlan } from '../../src/platform-model/call-faults.ts';
import type { Clock } from '../../src/ports/clock.ts';
import { withOverrides } from '../../src/ports/with-overrides.ts';

export interface FaultyDriver extends PlatformDriver {
  /** Every call so far, in order. */
  readonly calls: readonly DriverCall[];
  /** Lets hanging calls go through to the platform. */
  release(): void;
}

/** They get no faults here; the simulations inject their own. */
const UNTOUCHED = ['place', 'volumes.place', 'volumes.copy'];

/**
 * Wraps the driver so that `plan` injects faults. `close` rejects the calls under way. `clock` is needed for `delay`,
 * `late` and `lag`.
 */
export function withFaults(driver: PlatformDriver, plan: FaultPlan, clock?: Clock): FaultyDriver {
  const injector = new FaultInjector(plan, clock);
  const faulty = aroundCalls(driver, ({ name, args, limitsAt }, run) => {
    if (UNTOUCHED.includes(name)) return run(args);
    const [about] = args as [string | { ref?: string } | undefined];
    const ref = typeof about === 'string' ? about : about?.ref;
    const limits = limitsAt === undefined ? undefined : (args[limitsAt] as Call | undefined);
    return injector.carry(name as DriverCall['method'], ref, () => run(args), limits?.signal);
  });
  return withOverrides(faulty as FaultyDriver, {
    calls: injector.calls,
    release: () => injector.release(),
    async close() {
      injector.close();
      await driver.close();
    },
  });
}
