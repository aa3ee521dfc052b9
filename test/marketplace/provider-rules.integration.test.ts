import { join } from 'node:path';
import { expect, it } from 'vitest';
import { loadCatalog } from '../../src/config/load.ts';
import { packageRoot } from '../../src/config/package-root.ts';
import { newPublicKey } from '../support/doubles/ssh-keys.ts';
import { startTestMarketplace } from '../support/marketplace.ts';
import { startPlainOrchestrator } from '../support/plain-orchestrator.ts';
import { clientOf } from './berth-client.ts';

const none = { cloudId: undefined, attaches: false, grows: false, isRenamed: false };

/** M: Volume rules, by provider, with an orchestrator of Berth that has the catalog of that provider. */
it.each([
  {
    ...{ letter: 'a', offerId: 'a-cpu-8x32', region: 'us-dallas' },
    ...{ ...none, attaches: true, grows: true, isRenamed: true },
  },
  { letter: 'c', offerId: 'c-cpu-2x8', region: 'eu-stockholm', ...none, cloudId: 'cloud-stockholm-2' },
  { letter: 'd', offerId: 'd-cpu-4x16', region: 'us-phoenix', ...none, attaches: true },
  { letter: 'e', offerId: 'e-cpu-8x32', region: 'eu-frankfurt', ...none, attaches: true, grows: true },
  { letter: 'f', offerId: 'f-cpu-8x32', region: 'us-newark', ...none },
])(
  'volumes of provider-$letter are attached, detached, made larger and renamed where they can be [real-volume-changes]',
  async ({ letter, offerId, region, cloudId, attaches, grows, isRenamed }) => {
    const provider = `provider-${letter}`;
    const catalog = loadCatalog(join(packageRoot(), 'fixtures', 'catalogs', `${provider}.yaml`));
    await using berth = await startPlainOrchestrator(() => 'none', { catalog });
    const { clock, orchestrator, platform } = berth;
    const providers = { [provider]: { client: clientOf(orchestrator, clock) } };
    await using market = await startTestMarketplace({ clock, providers });
    async function ask(method: string, path: string, body: unknown, expected: number) {
      const reply = await clock.advanceUntilSettled(market.request(method, path, { body }), 100);
      expect(reply.status, reply.text).toBe(expected);
      return reply.body;
    }
    async function nothingIsSent(method: string, path: string, body: unknown): Promise<void> {
      const before = platform.volumes;
      await ask(method, path, body, 400);
      await clock.advance(20_000);
      expect(platform.volumes).toEqual(before);
    }

    const operatingSystem = catalog.offers.get(offerId)?.osOptions[0];
    const wanted = {
      provider,
      offerId,
      gpuCount: 0,
      region,
      operatingSystem,
      ssh_public_key: newPublicKey(),
    };
    const { id } = await ask('POST', '/api/deployments', wanted, 201);
    await clock.advance(60_000);
    expect(await ask('GET', `/api/deployments/${id}`, undefined, 200)).toMatchObject({ status: 'running' });
    const body = { provider, region, cloudId, name: 'data', sizeInGb: 100 };
    const { volumeId } = await ask('POST', '/api/volumes', body, 201);
    const path = `/api/volumes/${volumeId}`;
    if (attaches) {
      const attached = { status: 'attached', attachedToDeploymentIds: [id] };
      expect(await ask('POST', `${path}/attach`, { deploymentId: id }, 200)).toMatchObject(attached);
      const released = { status: 'available', attachedToDeploymentIds: [] };
      expect(await ask('POST', `${path}/detach`, { deploymentId: id }, 200)).toMatchObject(released);
    } else await nothingIsSent('POST', `${path}/attach`, { deploymentId: id });
    for (const [to, isPossible] of [
      [{ sizeInGb: 200 }, grows],
      [{ sizeInGb: 60 }, false],
      [{ name: 'other' }, isRenamed],
    ] as const)
      if (isPossible) expect(await ask('PATCH', path, to, 200)).toMatchObject(to);
      else await nothingIsSent('PATCH', path, to);
    await ask('DELETE', path, undefined, 200);
  },
);
