import { expect, it } from 'vitest';
import { renderUserData } from '../../src/orchestrator/cloud-init/render.ts';
import { startPlainOrchestrator } from '../support/plain-orchestrator.ts';
import { instanceRequest } from '../support/rows/requests.ts';

interface Refusal {
  error: { code: string; details: { issues: { path: string; message: string }[] } };
}

async function startWith(cloudInitBytes: number) {
  return startPlainOrchestrator(() => 'none', { manifest: { cloudInitBytes } });
}

it('takes as much cloud_init as the platform can hand to a machine, and refuses one byte more [cloud-init-too-long]', async () => {
  const cloudInit = { runcmd: [`echo ${'x'.repeat(1_000)}`] };
  const bytes = Buffer.byteLength(renderUserData(cloudInit));
  await using berth = await startWith(bytes);
  const { orchestrator, platform } = berth;
  const longer = { cloud_init: { runcmd: [`${cloudInit.runcmd[0]}y`] }, name: 5 };
  for (const body of [longer, { ...longer, name: 'fine' }]) {
    const refused = await orchestrator.request<Refusal>('POST', '/instances', {
      body: instanceRequest(body),
    });
    expect(refused.status).toBe(400);
    const issue = refused.body.error.details.issues.find(({ path }) => path === 'cloud_init');
    expect(issue?.message).toBe(`expected at most ${bytes} bytes as user data, got ${bytes + 1}`);
  }
  expect(platform.machines.size).toBe(0);
  await berth.create({ cloud_init: cloudInit });
});

it('sells no cloud_init on a platform that has none, whatever the catalog says [cloud-init-platform-without]', async () => {
  await using berth = await startWith(0);
  const { orchestrator } = berth;
  const { body } = await orchestrator.request<{ configurations: { supports_cloud_init: boolean }[] }>(
    'GET',
    '/configurations',
  );
  expect(body.configurations.map((offer) => offer.supports_cloud_init)).not.toContain(true);
  const asked = instanceRequest({ cloud_init: { runcmd: ['true'] } });
  const refused = await orchestrator.request<Refusal>('POST', '/instances', { body: asked });
  expect([refused.status, refused.body.error.code]).toEqual([400, 'cloud_init_unsupported']);
});
