import { collectLog } from '../../../test/support/doubles/log.ts';
import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import { withHosts } from '../kit/checks/hosts.fixture.ts';
import { type DriverContext, describeDriver } from '../kit/driver.suite.ts';
import { createSimulator } from '../simulator/platform/simulator.ts';
import { machineSpec } from '../simulator/simulator.fixture.ts';
import { exec } from './driver.ts';
import { answersOf, sendJson, startWebhook, type WebhookFixture } from './protocol-server.fixture.ts';

for (const { protocol, attachVolume, hosts } of [
  { protocol: 1, attachVolume: 'cold', hosts: 'chosen by the driver' },
  { protocol: 2, attachVolume: 'hot', hosts: 'chosen by Berth' },
] as const) {
  let webhook: WebhookFixture;
  describeDriver(`a driver over HTTP, version ${protocol}, with ${attachVolume} volumes and hosts ${hosts}`, {
    setup: async (): Promise<DriverContext> => {
      const clock = new VirtualClock();
      const capacity = [{ offerId: 'h100', datacenter: 'fra', units: 2, spot: false }];
      const simulator = await createSimulator(
        { stateFile: ':memory:', capacity, platform: { attach_volume: attachVolume } },
        clock,
      );
      const answer = answersOf(
        protocol === 1 ? simulator : withHosts(simulator, ['n1', 'n2']),
        clock,
        protocol,
      );
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
