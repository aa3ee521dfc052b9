import { expect, it } from 'vitest';
import { VirtualClock } from '../../../../test/support/time/virtual-clock.ts';
import type { PlatformDriver } from '../../../orchestrator/model/platform-driver.ts';
import { createSimulator } from '../../simulator/platform/simulator.ts';
import { machineSpec } from '../../simulator/simulator.fixture.ts';
import type { DriverContext } from './bench.ts';
import { runCheck } from './check.ts';
import { driverChecks } from './index.ts';
import { machineDefects } from './machine-defects.fixture.ts';
import { placementDefects } from './placement-defects.fixture.ts';

const cases = Object.entries({ ...machineDefects, ...placementDefects }).flatMap(([id, list]) =>
  list.map(([defect, breaks]) => ({ id, defect, breaks })),
);

it.each(cases)('$id detects a driver that $defect', async ({ id, breaks }) => {
  const clock = new VirtualClock();
  const capacity = [{ offerId: 'h100', datacenter: 'fra', units: 2, spot: false }];
  const simulator = await createSimulator({ stateFile: ':memory:', capacity }, clock);
  const driver: PlatformDriver = { ...simulator, ...breaks(simulator, clock) };
  const context: DriverContext = {
    driver,
    machineSpec: (ref) => machineSpec({ ref }),
    volumeSpec: (ref) => ({ ref, datacenter: 'fra', sizeGb: 10, type: undefined, note: 'a note' }),
    units: 2,
    wait: (ms) => clock.advance(ms),
    now: () => clock.now(),
    impossible: { invalid: { datacenter: 'nowhere' } },
    removeReleased: async () => undefined,
    openUnreachable: async () => ({
      ...driver,
      list: async () => ({ answer: 'unknown', reason: 'planted' }),
      close: async () => undefined,
    }),
  };
  const check = driverChecks.find((found) => found.id === id);
  if (check === undefined) throw new Error(`there is no check ${id}`);
  const result = await runCheck(check, context);
  await simulator.close();
  expect(result).toMatchObject({ outcome: 'failed', problem: expect.not.stringContaining('a call threw') });
});

it('gives each check a unique id, a reason and a remedy', () => {
  const ids = driverChecks.map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
  for (const { id, why, remedy } of driverChecks) {
    expect(id).toMatch(/^[a-z]+(-[a-z]+)*$/);
    expect(why).toMatch(/\.$/);
    expect(remedy).toMatch(/\.$/);
  }
});
