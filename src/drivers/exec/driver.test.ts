import { collectLog } from '../../../test/support/doubles/log.ts';
import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import { withHosts } from '../kit/checks/hosts.fixture.ts';
import { type DriverContext, describeDriver } from '../kit/driver.suite.ts';
import { createSimulator } from '../simulator/platform/simulator.ts';
import { machineSpec } from '../simulator/simulator.fixture.ts';
import { exec } from './driver.ts';
import { answersOf, sendJson, startWebhook, type WebhookFixture } from './protocol-server.fixture.ts';

for (const { isPlain, attachVolume, hosts } of [
  { isPlain: true, attachVolume: 'cold', hosts: 'chosen by the driver' },
  { isPlain: false, attachVolume: 'hot', hosts: 'chosen by Berth' },
] as const) {
  let webhook: WebhookFixture;
  describeDriver(`a driver over HTTP with ${attachVolume} volumes and hosts ${hosts}`, {
    setup: async (): Promise<DriverContext> => {
      const clock = new VirtualClock();
      const capacity = [{ offerId: 'h100', datacenter: 'fra', units: 2, spot: false }];
      const simulator = await createSimulator(
        { stateFile: ':memory:', capacity, platform: { attachVolume } },
        clock,
      );
      const answer = answersOf(isPlain ? simulator : withHosts(simulator, ['n1', 'n2']), clock, isPlain);
      webhook = await startWebhook(async (request, response) =>
        sendJson(response, { id: request.id, result: await answer(request) }),
      );
      const options = exec.configSchema.parse({ driver: 'exec', url: webhook.url });
      const catalog = { regions: new Map(), offers: new Map() };
      const platform = 'default';
      const setting = { platform, catalog, databaseFile: undefined, env: {}, clock, log: collectLog().log };
      const driver = await exec.open(options, setting);
      return {
        driver,
        machineSpec: (ref) => machineSpec({ ref }),
        volumeSpec: (ref) => ({ ref, datacenter: 'fra', sizeGb: 10, type: undefined, note: 'a note' }),
        units: 2,
        removeReleased: async () => undefined,
        wait: (ms) => clock.advance(ms),
        now: () => clock.now(),
      };
    },
    teardown: async ({ driver }) => {
      await driver.close();
      await webhook[Symbol.asyncDispose]();
    },
  });
}
