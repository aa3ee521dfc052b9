import { describe } from 'vitest';
import { describeDriver } from '../kit/driver.suite.ts';
import { openstackInMemory, specOf } from './driver.fixture.ts';

describe.each([
  ['servers', {}],
  [
    'shelved servers, floating IPs and boot volumes',
    { bootsFromVolume: true, onStop: 'release', floating: true },
  ],
] as const)('an OpenStack cloud in memory with %s', (_what, given) => {
  describeDriver('the driver', {
    setup: async () => {
      const { time, wait, open } = openstackInMemory(given);
      return {
        driver: open(),
        machineSpec: (ref) => specOf(ref),
        volumeSpec: (ref) => ({ ref, datacenter: 'fra', sizeGb: 10, type: undefined, note: 'a note' }),
        units: undefined,
        wait,
        now: () => time.now,
        reopen: async () => open(),
        openUnreachable: async () =>
          openstackInMemory({
            transport: () => ({
              send: () => Promise.reject(Object.assign(new Error('refused'), { code: 'ECONNREFUSED' })),
              close: async () => undefined,
            }),
          }).open(),
        impossible: { image_missing: { image: 'no-such-image' } },
      };
    },
    teardown: ({ driver }) => driver.close(),
  });
});
