import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { createSandbox } from '../../compose/sandbox/sandbox.ts';
import { SSH_KEY } from '../faults/bench.fixture.ts';
import type { Sandbox, SandboxUser } from '../sandbox.ts';
import type { MarketplaceOperator } from './client.ts';

let sandbox: Sandbox;
let operator: MarketplaceOperator;
let user: SandboxUser;
beforeAll(async () => {
  sandbox = await createSandbox({
    providers: ['d', 'b'],
    marketplace: { credit_usd: 100 },
    rate_limits: false,
  });
  operator = sandbox.control.operator('marketplace');
});
afterAll(() => sandbox.close());
beforeEach(async () => {
  user = (await sandbox.account()).marketplace as SandboxUser;
});

// biome-ignore lint/suspicious/noExplicitAny: each endpoint has an answer of its own
type Reply = { status: number; body: any };

async function send(
  path: string,
  body?: object,
  method = body === undefined ? 'GET' : 'POST',
  key = user.apiKey,
): Promise<Reply> {
  const response = await sandbox.fetch(path, {
    method,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: await response.json() };
}
/** Sends a request to the operator API over HTTP. */
const over = (path: string, body?: object) =>
  send(`/control/marketplace/operator/v1${path}`, body, undefined, sandbox.controlKey);

const orders = {
  d: { provider: 'provider-d', offerId: 'd-cpu-4x16', region: 'us-phoenix' },
  b: { provider: 'provider-b', offerId: 'b-cpu-4x16-spot', region: 'us-ashburn' },
};
const order = (letter: keyof typeof orders, more: object = {}) => ({
  ...orders[letter],
  gpuCount: 0,
  operatingSystem: 'ubuntu-24.04',
  ssh_public_key: SSH_KEY,
  ...more,
});

/** Deploys, and waits until the deployment runs. */
async function deploy(letter: keyof typeof orders, key = user.apiKey): Promise<string> {
  const { body } = await send('/api/deployments', order(letter), 'POST', key);
  await sandbox.clock.advance(120_000);
  expect((await send(`/api/deployments/${body.id}`, undefined, 'GET', key)).body.status).toBe('running');
  return body.id;
}

const balance = async (): Promise<number> =>
  (await send('/api/balance')).body.teams.find(({ teamId }: { teamId: string }) => teamId === user.teamId)
    .balance;

/** What an hour costs the user's team. */
async function anHour(): Promise<number> {
  const before = await balance();
  await sandbox.clock.advance(3_600_000);
  return Number((before - (await balance())).toFixed(6));
}

const mailsTo = (email: string) =>
  sandbox.mails.filter(({ to }) => to === email).map(({ subject }) => subject);

it('books a payment with a receipt, a refund, and free credit', async () => {
  const credit = {
    team: user.teamId,
    kind: 'top_up' as const,
    amount_usd: 25,
    reference: `payment-${user.teamId}`,
  };
  expect((await over(`/teams/${user.teamId}/credit`, credit)).status).toBe(201);
  expect(await balance()).toBe(125);
  await over(`/teams/${user.teamId}/credit`, credit);
  expect(await balance()).toBe(125);
  await operator.bookCredit({
    ...credit,
    kind: 'adjustment',
    amount_usd: -5.5,
    reference: `${user.teamId}-2`,
    reason: 'refund',
  });
  expect(await balance()).toBe(119.5);
  await operator.bookCredit({ ...credit, kind: 'grant', amount_usd: 0.5, reference: `${user.teamId}-3` });
  expect(await balance()).toBe(120);
  await sandbox.clock.advance(10_000);
  expect(mailsTo(user.email)).toEqual([
    `Receipt: $25.00 for ${user.email.replace('@sandbox.test', '')}'s team`,
  ]);
});

it('mails who wants it that a deployment is ready or has failed', async () => {
  await deploy('d');
  expect(mailsTo(user.email)).toEqual([]);
  const changed = await over(`/users/${user.userId}`, { deployment_mail: true });
  expect(changed.body).toMatchObject({ email: user.email, deployment_mail: true, marketing_mail: true });
  const id = await deploy('d');
  await sandbox.clock.advance(10_000);
  expect(mailsTo(user.email)).toEqual([expect.stringMatching(/^Ready: /)]);
  const mails = await sandbox.control.mails();
  expect(mails.some(({ to, text }) => to === user.email && text.includes(id))).toBe(true);
  await sandbox.faults.arm('boot-fails', { provider: 'd' });
  await send('/api/deployments', order('d'));
  await sandbox.clock.advance(120_000);
  expect(mailsTo(user.email)).toEqual([expect.anything(), expect.stringMatching(/^Failed: /)]);
  await operator.changeUser({ user: user.email, deployment_mail: false });
  await deploy('d');
  await sandbox.clock.advance(10_000);
  expect(mailsTo(user.email)).toHaveLength(2);
});

it('mails when an offer is back in stock, unless marketing mail is off', async () => {
  const d = sandbox.control.operator('d');
  const offer = { kind: 'offer', name: orders.d.offerId } as const;
  const soldOutAndBack = async () => {
    await d.cordon(offer);
    await sandbox.clock.advance(600_000);
    await d.uncordon(offer);
    await sandbox.clock.advance(600_000);
  };
  await over(`/users/${user.userId}/stock-alerts`, { provider: 'provider-d', offer: offer.name });
  await soldOutAndBack();
  expect(mailsTo(user.email)).toEqual([expect.stringMatching(/^Back in stock: /)]);
  await operator.changeUser({ user: user.email, marketing_mail: false });
  await soldOutAndBack();
  expect(mailsTo(user.email)).toHaveLength(1);
});

it('discounts what runs, and what is deployed, until the discount ends', async () => {
  await deploy('b');
  expect(await anHour()).toBeCloseTo(0.03, 3);
  const { status, body } = await over(`/teams/${user.teamId}/discounts`, { percent: 50 });
  expect([status, body.percent]).toEqual([201, 50]);
  await sandbox.clock.advance(60_000);
  expect(await anHour()).toBeCloseTo(0.015, 3);
  const { data } = (await send('/api/gpu-offers?computeType=cpu&limit=50')).body;
  const offers = data.flatMap((group: { offers: object[] }) => group.offers);
  expect(offers).toContainEqual(
    expect.objectContaining({
      offerId: orders.b.offerId,
      price: 0.03,
      discountedPrice: 0.015,
      discountPercentage: 50,
    }),
  );
  await operator.endDiscount({ discountId: body.id });
  await sandbox.clock.advance(60_000);
  expect(await anHour()).toBeCloseTo(0.03, 3);
});

it('bills a spot machine at its new price, and any other at the price of its order', async () => {
  const d = sandbox.control.operator('d');
  const b = sandbox.control.operator('b');
  await deploy('b');
  await b.movePrice({ offer: orders.b.offerId, spot_price_per_hour: 0.01 });
  await sandbox.clock.advance(300_000);
  expect(await anHour()).toBeCloseTo(0.01, 3);
  await deploy('d');
  const both = await anHour();
  const [before] = await pricesOf(orders.d.offerId);
  await d.movePrice({ offer: orders.d.offerId, price_per_hour: 2 * Number(before) });
  await sandbox.clock.advance(600_000);
  expect(await pricesOf(orders.d.offerId)).toEqual([2 * Number(before)]);
  expect(await anHour()).toBeCloseTo(both, 2);
  await Promise.all([d.reload(), b.reload()]);
});

async function pricesOf(id: string): Promise<number[]> {
  const { data } = (await send('/api/gpu-offers?computeType=cpu&limit=50')).body;
  const offers: { offerId: string; price: number }[] = data.flatMap(
    (group: { offers: object[] }) => group.offers,
  );
  return offers.flatMap(({ offerId, price }) => (offerId === id ? [price] : []));
}

it('ends keys of users that are revoked or expired', async () => {
  const read = async (key: string) => (await send('/api/deployments', undefined, 'GET', key)).status;
  const expires = new Date(sandbox.clock.now() + 60_000).toISOString();
  const short = (await over(`/users/${user.userId}/keys`, { expires_at: expires })).body;
  expect(await read(short.api_key)).toBe(200);
  await sandbox.clock.advance(61_000);
  expect(await read(short.api_key)).toBe(401);
  const { keys } = await operator.listKeys({ user: user.email });
  expect(keys.map(({ state }) => state).sort()).toEqual(['expired', 'valid']);
  await operator.revokeKey({ keyId: String(keys.find(({ state }) => state === 'valid')?.id) });
  await sandbox.clock.advance(5_000);
  expect(await read(user.apiKey)).toBe(401);
});

it('lets a member use the team, mails admins only, and shuts out who was removed', async () => {
  const { id: kim } = (await over('/users', { email: `kim-${user.userId}@sandbox.test`, allow_keys: true }))
    .body;
  const { api_key: key } = await operator.createKey({ user: kim });
  const asKim = (path: string, body?: object) => send(path, body, undefined, key);
  const id = await deploy('d');
  expect((await asKim(`/api/deployments/${id}`)).status).toBe(403);
  expect((await asKim('/api/deployments', order('d', { teamId: user.teamId }))).status).toBe(403);
  expect((await over(`/teams/${user.teamId}/members`, { user: kim, role: 'member' })).status).toBe(200);
  expect((await asKim(`/api/deployments/${id}`)).status).toBe(200);
  expect((await asKim('/api/deployments', order('d', { teamId: user.teamId }))).status).toBe(201);
  const roles = async () =>
    (await send('/api/teams')).body
      .find((team: { id: string }) => team.id === user.teamId)
      .members.map(({ role }: { role: string }) => role);
  expect(await roles()).toEqual(['owner', 'member']);
  const pay = async (reference: string) => {
    await operator.bookCredit({ team: user.teamId, kind: 'top_up', amount_usd: 1, reference });
    await sandbox.clock.advance(10_000);
  };
  await pay(`as-member-${kim}`);
  expect(mailsTo(`kim-${user.userId}@sandbox.test`)).toEqual([]);
  await operator.setMember({ team: user.teamId, user: kim, role: 'admin' });
  expect(await roles()).toEqual(['owner', 'admin']);
  await pay(`as-admin-${kim}`);
  expect(mailsTo(`kim-${user.userId}@sandbox.test`)).toEqual([expect.stringMatching(/^Receipt/)]);
  await expect(operator.removeMember({ team: user.teamId, user: user.email })).rejects.toThrow(
    /owns the team/,
  );
  await operator.removeMember({ team: user.teamId, user: kim });
  expect((await asKim(`/api/deployments/${id}`)).status).toBe(403);
});

it('makes teams, changes their owner, and sets the current team of a user', async () => {
  const { id: team } = (await over('/teams', { name: 'Research', owner: user.email })).body;
  await over(`/users/${user.userId}/team`, { team });
  const { body } = await send('/api/teams');
  expect(body.map(({ name }: { name: string }) => name)).toContain('Research');
  const other = (await sandbox.account()).marketplace as SandboxUser;
  await operator.setMember({ team, user: other.email, role: 'owner' });
  const { members } = (await send('/api/teams')).body.find(({ id }: { id: string }) => id === team);
  expect(members.map(({ role }: { role: string }) => role).sort()).toEqual(['admin', 'owner']);
  // The team has no credit, and it is the one that the user switched to.
  expect((await send('/api/deployments', order('d'))).body.details.reason).toBe('insufficient_balance');
});

it('refuses a volume that its provider refuses at once, and shows one in error that it refuses later', async () => {
  const order = { name: 'data', sizeInGb: 50, provider: 'provider-d', region: 'us-phoenix' };
  await sandbox.faults.arm('volume-refused', { provider: 'd' });
  expect((await send('/api/volumes', order)).status).toBe(502);
  await sandbox.control.transitions.set({ mode: 'manual', phase: 'volumes.create', provider: 'd' });
  const { body } = await send('/api/volumes', order);
  const status = async () => (await send(`/api/volumes/${body.volumeId}`)).body.status;
  expect(await status()).toBe('creating');
  await sandbox.faults.arm('volume-refused', { provider: 'd' });
  await sandbox.clock.advance(120_000);
  expect(await status()).toBe('error');
  await sandbox.control.transitions.clear();
});
