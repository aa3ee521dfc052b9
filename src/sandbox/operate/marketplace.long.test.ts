import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { createSandbox } from '../../compose/sandbox/sandbox.ts';
import type { SandboxUser } from '../parts.ts';
import type { Sandbox } from '../sandbox.ts';
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

const balance = async (): Promise<number> =>
  (await send('/api/balance')).body.teams.find(({ teamId }: { teamId: string }) => teamId === user.teamId)
    .balance;

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
