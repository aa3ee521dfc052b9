import { VirtualClock } from '../../../test/support/clocks/virtual-clock.ts';
import { type DriverSuiteContext, describeDriver } from '../kit/driver.suite.ts';
import { createSimulator } from './platform/simulator.ts';
import { machineSpec } from './simulator.fixture.ts';

for (const attachVolume of ['hot', 'cold'] as const) {
  describeDriver(`the simulator with ${attachVolume} volumes`, {
    setup: async (): Promise<DriverSuiteContext> => {
      const clock = new VirtualClock();
      const capacity = [{ offerId: 'h100', datacenter: 'fra', units: 2, spot: false }];
      const driver = await createSimulator(
        { stateFile: ':memory:', capacity, platform: { attach_volume: attachVolume } },
        clock,
      );
      return {
        driver,
        machineSpec: (ref) => machineSpec({ ref }),
        volumeSpec: (ref) => ({ ref, datacenter: 'fra', sizeGb: 10, type: undefined, note: 'a note' }),
        units: 2,
        wait: (ms) => clock.advance(ms),
      };
    },
    teardown: ({ driver }) => driver.close(),
  });
}
