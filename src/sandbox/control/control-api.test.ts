import { expect, it } from 'vitest';
import { startTestMarketplace } from '../../../test/support/marketplace.ts';
import { startTestOrchestrator } from '../../../test/support/orchestrator.ts';
import { createSandbox } from '../../compose/sandbox/sandbox.ts';

it('no server of production has the control API [no-control-in-production]', async () => {
  await using sandbox = await createSandbox();
  const { paths } = (await (await sandbox.fetch('/control/openapi.json')).json()) as {
    paths: Record<string, object>;
  };
  await using orchestrator = await startTestOrchestrator();
  await using market = await startTestMarketplace();
  const servers = [
    { routes: orchestrator.app.routes, fetch: orchestrator.fetch },
    { routes: market.marketplace.app.routes, fetch: market.fetch },
  ];
  for (const server of servers) {
    expect(server.routes.length).toBeGreaterThan(20);
    expect(server.routes.filter((route) => route.path.includes('control'))).toEqual([]);
    for (const path of Object.keys(paths)) {
      const reply = await server.fetch(`/control${path.replace(/\{[^}]+\}/g, '1')}`, {
        headers: { Authorization: `Bearer ${sandbox.controlKey}` },
      });
      expect([path, reply.status]).toEqual([path, 404]);
    }
  }
});
