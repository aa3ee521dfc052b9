import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import { describeDriver } from '../kit/driver.suite.ts';
import { createSimulator } from './platform/simulator.ts';
import { suiteContext } from './simulator.fixture.ts';

for (const attachVolume of ['hot', 'cold'] as const) {
  describeDriver(`the simulator with ${attachVolume} volumes`, {
    setup: async () => {
      const clock = new VirtualClock();
      const capacity = [{ offerId: 'h100', datacenter: 'fra', units: 2, spot: false }];
      const driver = await createSimulator(
        { stateFile: ':memory:', capacity, platform: { attachVolume } },
        clock,
      );
      return suiteContext(driver, clock);
    },
    teardown: ({ driver }) => driver.close(),
  });
}
