import { expect, it } from 'vitest';
import { createSandbox } from '../compose/sandbox/sandbox.ts';
import { faultNames } from './faults/catalog/catalog.ts';
import { marketClient, tokenClient } from './isolation.fixture.ts';

it.for(faultNames)(
  '%s for one account is not noticed by another [sandbox-fault-isolation]',
  async (fault, { skip }) => {
    await using sandbox = await createSandbox({ providers: ['b'], marketplace: true });
    const [struck, spared] = [await sandbox.account(), await sandbox.account()];
    const client = await tokenClient(sandbox, struck);
    const others = { token: await tokenClient(sandbox, spared), market: marketClient(sandbox, spared) };
    try {
      await sandbox.faults.arm(fault, { account: struck.name, times: 'sticky' });
    } catch (error) {
      expect(String(error)).toContain('account: ');
      return skip('it takes no account');
    }
    const orders: Promise<unknown>[] = [];
    const made: [instance: string, deployment: string][] = [];
    for (let round = 0; round < 2; round++) {
      const ordered = [client.order(), marketClient(sandbox, struck).deploy()];
      orders.push(...ordered.map((order) => order.catch(() => undefined)));
      const [instance, deployment] = [await others.token.order(), await others.market.deploy()];
      expect([instance.status, deployment.status]).toEqual([201, 201]);
      made.push([instance.body.id, deployment.body.id]);
      await sandbox.clock.advance(30_000);
    }
    for (const [instance, deployment] of made)
      expect([await others.token.statusOf(instance), await others.market.statusOf(deployment)]).toEqual([
        'ONLINE',
        'running',
      ]);
  },
);
