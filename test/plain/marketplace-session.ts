import { readFileSync } from 'node:fs';
import { type AutoClock, createAutoClock } from '../../conformance/mutants/reference/auto-clock.ts';
import {
  createReference,
  type ReferenceSetup,
} from '../../conformance/mutants/reference/create-reference.ts';
import { createClient } from '../../src/client/create-client.ts';
import { type Marketplace, startMarketplace } from '../../src/compose/marketplace/marketplace.ts';
import { ApiError } from '../../src/marketplace/contract/errors.ts';
import { createDeployment } from '../../src/marketplace/deployments/create.ts';
import { pauseDeployment, resumeDeployment } from '../../src/marketplace/deployments/lifecycle.ts';
import { terminateDeployment } from '../../src/marketplace/deployments/terminate.ts';
import { defaultOptions, defaultRateLimits } from '../../src/marketplace/model/options.ts';
import { parseGpuTypes } from '../../src/marketplace/providers/gpu-types.ts';
import { providerProfileSchema } from '../../src/marketplace/providers/profile.ts';
import type { CatalogOffer } from '../../src/marketplace/providers/provider.ts';
import type { Clock, Random } from '../../src/ports/clock.ts';
import { openMemoryMarketplaceStore } from '../../src/store/marketplace/sqlite/store.ts';
import { silentLog } from '../support/doubles/log.ts';
import { seed, userId } from '../support/rows/marketplace-rows.ts';
import { keyOfSomebody } from './people.ts';
import { type Received, recording } from './traffic.ts';

const MINUTE_MS = 60_000;
const CALLER = { userId };
const gpuTypes = parseGpuTypes(
  readFileSync(new URL('../../fixtures/gpu-types.yaml', import.meta.url), 'utf8'),
);
const profile = providerProfileSchema.parse({
  id: 'reference',
  name: 'Reference',
  machines: [
    {
      no_restart: 'The contract has no restart.',
      deploy_timeout_minutes: 15,
      stopped_price_per_hour: 0.01,
    },
  ],
  volumes: null,
});

/** What a provider receives from a real marketplace whose users rent `machines` machines, one after another or at once. */
export async function recordMarketplace(
  random: Random,
  machines: number,
  behave?: ReferenceSetup['behave'],
): Promise<Received[]> {
  const clock = createAutoClock({
    startWallMs: Date.UTC(2026, 0, 1) + Math.floor(random.next() * 1e10),
    quietTurns: 8,
  });
  const reference = createReference({ clock, ...(behave && { behave }) });
  const { baseUrl, apiKeys } = reference.options;
  const { transport, received } = recording(reference.transport, baseUrl, clock);
  const store = openMemoryMarketplaceStore();
  await seed(store, 1_000_000_000);
  const marketClock = toClock(clock);
  const client = createClient({
    baseUrl,
    credential: { apiKey: apiKeys[0] ?? '' },
    allowPrivate: true,
    timeoutMs: defaultOptions.polling.callTimeoutMs,
    clock: marketClock,
    fetch: async (url, { method = 'GET', headers, body }) => {
      const request = {
        method,
        url,
        headers: headers as Record<string, string>,
        ...(body != null && { body: String(body) }),
      };
      const answer = await transport.send(request, { timeoutMs: 60_000, maxBodyBytes: 1e7 });
      if ('failure' in answer) throw new Error(answer.message);
      const hasBody = ![204, 304].includes(answer.status);
      return new Response(hasBody ? answer.body : null, {
        status: answer.status,
        headers: { 'content-type': 'application/json', ...answer.headers },
      });
    },
  });
  const marketplace = await startMarketplace({
    store,
    clock: marketClock,
    random,
    log: silentLog,
    options: defaultOptions,
    gpuTypes,
    trustedProxies: 0,
    rateLimits: defaultRateLimits,
    providers: [
      { profile, client, sshProbe: { probe: async () => ({ ok: true, hostKeyFingerprint: 'SHA256:x' }) } },
    ],
    mailer: null,
  });
  try {
    await Promise.all(
      Array.from({ length: machines }, async () => {
        await clock.sleep(minutes(0.5 + random.next() * 5));
        await rent(marketplace, clock, random);
      }),
    );
    await clock.sleep(minutes(random.next() * 4));
    return [...received];
  } finally {
    const closing = marketplace.close();
    await Promise.race([closing, clock.sleep(MINUTE_MS)]);
    await closing;
    await store.close();
    await reference.close();
  }
}

/** One user: rents a machine, uses it, sometimes stops and starts it, and ends it. */
async function rent({ deps, providers }: Marketplace, clock: AutoClock, random: Random): Promise<void> {
  const offer = cheapest([...(providers.get(profile.id)?.catalog.offers.values() ?? [])]);
  const { id } = await createDeployment(deps, CALLER, {
    provider: profile.id,
    offerId: offer.offerId,
    gpuCount: offer.gpuCount,
    region: offer.inStockRegions[Math.floor(random.next() * offer.inStockRegions.length)] ?? '',
    operatingSystem: offer.osOptions[Math.floor(random.next() * offer.osOptions.length)] ?? '',
    ssh_public_key: keyOfSomebody(random),
  });
  const status = async () => (await deps.store.read.deployments.byId(id))?.status;
  while ((await status()) === 'deploying') await clock.sleep(minutes(random.next() / 6));
  const runs = 20 + random.next() * 20;
  const before = random.next() < 0.6 ? 4 + random.next() * 8 : runs;
  await clock.sleep(minutes(before) + 5_000);
  if (before < runs) {
    await unlessSlow(pauseDeployment(deps, CALLER, id));
    await clock.sleep(minutes(1 + random.next() * 5));
    await unlessSlow(resumeDeployment(deps, CALLER, id));
    await clock.sleep(minutes(runs - before) + 60_000);
  }
  await terminateDeployment(deps, CALLER, id);
}

/** The provider may accept a change and finish it later. */
async function unlessSlow(change: Promise<unknown>): Promise<void> {
  await change.catch((error: unknown) => {
    if (!(error instanceof ApiError) || error.code !== 'PROVIDER_SLOW') throw error;
  });
}

function cheapest(offers: readonly CatalogOffer[]): CatalogOffer {
  const [first] = offers
    .filter(({ inStockRegions, instanceType }) => inStockRegions.length > 0 && instanceType === 'DEDICATED')
    .toSorted((a, b) => a.priceMicroUsdPerHour - b.priceMicroUsdPerHour);
  if (first === undefined) throw new Error('no offer is in stock');
  return first;
}

function minutes(count: number): number {
  return Math.round(count * MINUTE_MS);
}

/** The clock of the reference, as the marketplace uses it. */
function toClock(clock: AutoClock): Clock {
  return {
    now: () => clock.wall(),
    setTimer(delayMs, callback) {
      const cancelled = new AbortController();
      clock.sleep(delayMs, cancelled.signal).then(callback, () => {});
      return { cancel: () => cancelled.abort() };
    },
  };
}
