import { createOperatorKey } from '../../src/operator-kit/keys.ts';
import { systemRandom } from '../../src/runtime/system.ts';
import { PlainProvider } from '../support/doubles/plain-provider.ts';
import { newPublicKey } from '../support/doubles/ssh-keys.ts';
import { startTestMarketplace, type TestMarketplaceOptions, type TestUser } from '../support/marketplace.ts';
import { VirtualClock } from '../support/time/virtual-clock.ts';

export const creating = {
  provider: 'provider-d',
  offerId: 'gpu-1',
  gpuCount: 1,
  region: 'eu-one',
  operatingSystem: 'ubuntu-24.04',
  instanceType: 'DEDICATED',
};
export const storing = { name: 'data', sizeInGb: 100, provider: 'provider-d', region: 'eu-one' };

/** A marketplace with one provider and an operator, mara. */
export async function startOperatedMarket({
  operator = 'mara',
  clock = new VirtualClock(),
  ...options
}: TestMarketplaceOptions & { operator?: string; clock?: VirtualClock } = {}) {
  const plain = new PlainProvider(clock);
  const market = await startTestMarketplace({
    clock,
    hasOperators: true,
    providers: { 'provider-d': { client: plain.client } },
    ...options,
  });
  const { key } = await createOperatorKey({ ...market, random: systemRandom }, { name: operator });
  const deploy = async (by: TestUser = market.user, body: object = {}): Promise<string> => {
    const reply = await market.request('POST', '/api/deployments', {
      key: by.key,
      body: { ...creating, ssh_public_key: newPublicKey(), ...body },
    });
    if (reply.status !== 201) throw new Error(reply.text);
    return String(reply.body['id']);
  };
  return {
    market,
    clock,
    plain,
    /** Asks the operators' API. */
    async ask(
      path: string,
      body?: object,
    ): Promise<{ status: number; body: Record<string, unknown>; text: string }> {
      const reply = await market.admin.fetch(`/operator/v1${path}`, {
        method: body === undefined ? 'GET' : 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      const text = await reply.text();
      return { status: reply.status, body: JSON.parse(text) as Record<string, unknown>, text };
    },
    deploy,
    async deployRunning(by?: TestUser, body?: object): Promise<string> {
      const id = await deploy(by, body);
      await clock.advance(60_000);
      return id;
    },
    async makeVolume(by: TestUser = market.user): Promise<string> {
      const reply = await market.request('POST', '/api/volumes', { key: by.key, body: storing });
      if (reply.status !== 201) throw new Error(reply.text);
      return String(reply.body['volumeId']);
    },
    statusOf: async (id: string) => (await market.store.read.deployments.byId(id))?.status,
    subjects: () => market.sent.map(({ subject }) => subject),
    newestAudit: async () => (await market.store.read.audit.page({ limit: 1 }))[0],
    [Symbol.asyncDispose]: () => market[Symbol.asyncDispose](),
  };
}

export type OperatedMarket = Awaited<ReturnType<typeof startOperatedMarket>>;
