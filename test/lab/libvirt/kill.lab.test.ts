import { it } from 'vitest';
import { liveThroughKills } from '../../lifecycle/over-any-driver.suite.ts';
import { serveEachTest } from './serving.ts';

const lab = serveEachTest();

it('goes on after kill -9 at each moment of a create, stop, start, restart and destroy [libvirt-kill-at-each-step]', {
  timeout: 15 * 60_000,
}, async () => {
  await liveThroughKills({
    server: lab.server,
    request: lab.server.request(),
    machines: () => lab.host.contents().filter((one) => /^berth-inst-[0-9a-f]+$/.test(one)),
    letsIn: async (machine) => (await lab.login(machine, 'echo in')).stdout === 'in\n',
    // A create is the claim, the disk, the power; the last of these is seen as done already.
    calls: { create: 2, restart: 2 },
  });
  await lab.nothingIsLeft();
});
